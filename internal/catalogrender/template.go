package catalogrender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/template"
	"github.com/operator-framework/operator-registry/alpha/template/basic"
	"github.com/operator-framework/operator-registry/alpha/template/semver"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxBundles is how many bundles one template may name, the same one each time or others. The
// package with most versions that is published has a tenth of that.
const maxBundles = 5000

// errTooMany says that a template names more than [maxBundles].
var errTooMany = fmt.Errorf("a template can have %d bundles at most", maxBundles)

// Template makes a catalog of a template, of the type that its schema says. The images of
// bundles that it names are pulled, each once.
func (r Renderer) Template(ctx context.Context, text []byte) (*declcfg.DeclarativeConfig, error) {
	if err := checkTemplate(text); err != nil {
		return nil, err
	}
	pulled, named := map[string]*declcfg.DeclarativeConfig{}, 0
	render := template.BundleRenderer(func(ctx context.Context, ref string) (_ *declcfg.DeclarativeConfig, err error) {
		if named++; named > maxBundles {
			return nil, errTooMany
		}
		if pulled[ref] == nil {
			pulled[ref], err = r.bundle(ctx, ref)
		}
		return pulled[ref], err
	})
	made, again, err := template.NewRegistry().CreateTemplateBySchema(bytes.NewReader(text), render)
	if unknown, ok := errors.AsType[*template.UnknownSchemaError](err); ok {
		return nil, fmt.Errorf("unknown schema %s; it takes %s and %s", excerpt.Quote(unknown.Schema), schemaBasic, schemaSemver)
	}
	if err != nil {
		return nil, err
	}
	if made.Type() != new(basic.Factory).Type() && made.Type() != new(semver.Factory).Type() {
		return nil, fmt.Errorf("it is a template of the type %q, and it takes basic or semver", made.Type())
	}
	return made.Render(ctx, again)
}

// checkTemplate refuses what the library takes without end, or without a word: it reads one
// document alone, and of a basic template it knows no key that is not there. What else is wrong
// it says itself.
func checkTemplate(text []byte) error {
	decoder := fbc.NewDecoder(bytes.NewReader(text), fbc.Limits{})
	first, err := decoder.Next()
	if _, beyond := errors.AsType[*fbc.LimitError](err); beyond {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // the library says it in its own words
	}
	switch _, err := decoder.Next(); {
	case err == nil:
		return errors.New("it has more than one document, and a template is one: make a file of each")
	case !errors.Is(err, io.EOF):
		return err
	}
	if first.Schema != schemaBasic {
		return nil // keys of the other one are checked by the library
	}
	return checkBasic(first.JSON)
}

const (
	schemaBasic  = "olm.template.basic"
	schemaSemver = "olm.semver"
)

// checkBasic refuses keys that have no meaning in a basic template.
func checkBasic(document []byte) error {
	var keys map[string]json.RawMessage
	var read struct {
		Entries []map[string]json.RawMessage `json:"entries"`
	}
	if err := errors.Join(json.Unmarshal(document, &keys), json.Unmarshal(document, &read)); err != nil {
		return nil //nolint:nilerr // likewise
	}
	if unknown := unknownOf(keys, "schema", "entries"); unknown != "" {
		return fmt.Errorf("unknown key %s: a template of the schema %s has schema and entries", unknown, schemaBasic)
	}
	if _, has := keys["entries"]; !has {
		return fmt.Errorf("it has no entries, of which a template of the schema %s consists", schemaBasic)
	}
	for i, entry := range read.Entries {
		var schema string
		if json.Unmarshal(entry["schema"], &schema) != nil || schema != declcfg.SchemaBundle {
			continue
		}
		unknown := unknownOf(entry, "schema", "image", "name")
		if _, has := entry["image"]; !has && unknown == "" {
			return fmt.Errorf("entry %d has no image: in a template, an %s has its schema and image alone", i+1, schema)
		}
		if unknown != "" {
			return fmt.Errorf("entry %d has the key %s: in a template, an %s has its schema and image alone", i+1, unknown, schema)
		}
	}
	return nil
}

// unknownOf is the first key that is not among the known ones, quoted; empty if there is none.
func unknownOf(keys map[string]json.RawMessage, known ...string) string {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			return excerpt.Quote(key)
		}
	}
	return ""
}
