package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// packageBody is what the page of a package shows.
type packageBody struct {
	Catalog string
	// Path is that of this page, for links.
	Path     string
	Details  packagecard.Details
	Notice   string
	Channels []packagecard.Channel
	Versions []packagecard.Version
	Form     form
	Watching watching
	// Fields are those of the configuration of Bundle, if they were asked for, and Schema
	// what they are made from.
	Fields         []configField
	Bundle, Schema string
	// Problems are what is wrong with what was filled in.
	Problems []string
	// Manifest is what the form makes; empty if it was not sent.
	Manifest string
	Download string
	// Choice is what would be installed.
	Choice []string
}

// pack is the page of one package, with a form that makes a manifest.
func (c *console) pack(w http.ResponseWriter, r *http.Request) {
	catalog, name := c.catalogOf(w, r), r.PathValue("name")
	if catalog == nil {
		return
	}
	offer, err := c.Offers.Package(r.Context(), catalog, name)
	if err != nil || offer == nil {
		code := http.StatusNotFound
		if err != nil {
			code = http.StatusServiceUnavailable
		}
		c.problem(w, code, pagePackages, fmt.Sprintf("Package %q of catalog %q", line(name), line(catalog.Name)),
			append(missing("the package", err), "it is not there, or cannot be read")[0])
		return
	}
	body := packageBody{
		Catalog: catalog.Name, Details: offer.Details, Form: newForm(r.URL.Query(), name),
		Path: packagePath(catalog.Name, name),
	}
	shown := page{Title: cmp.Or(offer.Details.DisplayName, name), Section: pagePackages}
	c.begin(w, pagePackage, shown)
	body.Watching = watchingFor(body.Form, offer)
	shown.Missing = c.fillForm(r.Context(), &body, catalog)
	explained, err := c.Asking.Choose(r.Context(), catalog, body.Form.extension(catalog.Name))
	shown.Missing = append(shown.Missing, missing("what would be chosen", err)...)
	body.Choice = explained.Lines
	body.Channels = first(packagecard.Channels(offer.Resolved, offer.Details.DefaultChannel))
	body.Versions = first(packagecard.Versions(offer.Resolved, explained.Cluster))
	body.Notice = packagecard.Notice(offer.Resolved)
	shown.Body = body
	c.finish(w, pagePackage, shown)
}

// watchingFor is what an operator can be told to watch, of which the modes of the newest version
// are known.
func watchingFor(filled form, offer *Offer) watching {
	if filled.Version != "" {
		return watchingOf(nil)
	}
	return watchingOf(offer.Details.InstallModes)
}

// problemsOf are what is wrong with a form, also by what the operator can be told to watch.
func problemsOf(filled form, can watching) []string {
	problems := filled.problems()
	if problem := can.problem(filled.Namespace, filled.watched()); problem != "" {
		problems = append(problems, problem)
	}
	return problems
}

// fillForm makes the manifest if the form was sent, and the fields of the configuration if these
// were asked for. It gives what could not be found out.
func (c *console) fillForm(ctx context.Context, body *packageBody, catalog *ocv1.ClusterCatalog) (unknown []string) {
	problems := problemsOf(body.Form, body.Watching)
	body.Form.List = body.Watching.asList(body.Form.Namespace, body.Form.watched())
	if body.Form.Fields {
		found, err := c.Asking.Configuration(ctx, catalog, body.Form.extension(catalog.Name))
		unknown = missing("fields of the configuration", err)
		body.Fields, body.Bundle, body.Schema = fieldsOf(found.Schema, body.Form), found.Bundle, schemaText(found.Schema)
		problems = append(problems, found.Problems...)
	}
	if !body.Form.Sent {
		return unknown
	}
	if body.Problems = problems; len(problems) > 0 {
		return unknown
	}
	manifest, more, err := c.manifestFor(ctx, body.Form, catalog.Name)
	if err != nil {
		body.Problems = []string{line(err.Error())}
		return unknown
	}
	body.Manifest = manifest
	body.Download = body.Path + "/manifest?" + body.Form.query().Encode()
	return append(unknown, more...)
}

// manifestFor makes the manifest of a form. Rights that cannot be found out are left out. It
// fails if the bundle does not take the configuration.
func (c *console) manifestFor(ctx context.Context, filled form, catalog string) (text string, unknown []string, err error) {
	var rights []permission.Document
	if filled.Rights {
		rights, err = c.Asking.Rights(ctx, filled.extension(catalog))
		if _, isRefused := errors.AsType[*bundle.ConfigError](err); isRefused {
			return "", nil, err
		}
		unknown = missing("the rights of the ServiceAccount, which the manifest lacks", err)
	}
	text, err = filled.manifest(catalog, rights)
	return text, unknown, err
}

// manifest is the manifest of a form as a file.
func (c *console) manifest(w http.ResponseWriter, r *http.Request) {
	catalog := c.catalogOf(w, r)
	if catalog == nil {
		return
	}
	filled := newForm(r.URL.Query(), r.PathValue("name"))
	offer, err := c.Offers.Package(r.Context(), catalog, filled.Package)
	switch {
	case err != nil:
		http.Error(w, line("the package: "+err.Error()), http.StatusServiceUnavailable)
		return
	case offer == nil:
		http.Error(w, "there is no such package", http.StatusNotFound)
		return
	}
	if problems := problemsOf(filled, watchingFor(filled, offer)); len(problems) > 0 {
		http.Error(w, strings.Join(problems, "\n"), http.StatusBadRequest)
		return
	}
	manifest, _, err := c.manifestFor(r.Context(), filled, catalog.Name)
	if err != nil {
		http.Error(w, line(err.Error()), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", filled.Name+".yaml"))
	_, _ = w.Write([]byte(manifest)) //nolint:gosec // a file to keep, and no page
}

// catalogOf is the catalog that a request is about; nil if there is none, in which case the
// request is answered.
func (c *console) catalogOf(w http.ResponseWriter, r *http.Request) *ocv1.ClusterCatalog {
	return sought(c, w, asked[ocv1.ClusterCatalog]{
		name: r.PathValue("catalog"), kind: "ClusterCatalog", section: pagePackages, nameOf: catalogName,
	}, c.Live.Catalogs())
}

// first are as many rows as a table has.
func first[T any](rows []T) []T { return rows[:min(len(rows), maxRows)] }
