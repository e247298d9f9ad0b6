package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// maxShownLines bounds the lines of a description that people are shown, and maxShownChannels
// the channels.
const (
	maxShownLines    = 30
	maxShownChannels = 20
)

// shown is what there is to tell of a package of one catalog.
type shown struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Catalog     string `json:"catalog"`
	Priority    int32  `json:"priority"`
	// Verified is what ImagePolicies make of the image of the catalog; absent if none is about it.
	Verified *verified `json:"verified,omitempty"`
	// AlsoIn are catalogs of lower priority that have it too.
	AlsoIn []string `json:"alsoIn,omitempty"`
	// Preferred says that no other catalog has it with the same priority.
	Preferred bool `json:"preferred"`
	// Deprecated says that the whole package is, and Deprecation what the catalog says to that.
	Deprecated  bool   `json:"deprecated,omitempty"`
	Deprecation string `json:"deprecation,omitempty"`

	Channels []packagecard.Channel `json:"channels,omitempty"`
	// Newest is the highest version, of which the rest is said.
	Newest       *packagecard.Version `json:"newest,omitempty"`
	InstallModes []string             `json:"installModes,omitempty"`
	// Definitions are the kinds that come with it.
	Definitions []string `json:"definitions,omitempty"`
	// RelatedImages is how many images it names besides its own.
	RelatedImages int      `json:"relatedImages"`
	Maturity      string   `json:"maturity,omitempty"`
	Maintainers   []string `json:"maintainers,omitempty"`
	// Rights are those of the operator, if they were asked for: they are in the image.
	Rights *packagecard.Rights `json:"rights,omitempty"`
	// Description is Markdown.
	Description string `json:"description,omitempty"`
}

// verified is a condition Verified.
type verified struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// shownList is the answer as programs read it.
type shownList struct {
	SchemaVersion int     `json:"schemaVersion"`
	Packages      []shown `json:"packages"`
}

func newShowCommand() *cobra.Command {
	o := lookup{newCatalogFlags()}
	var rights bool
	made := o.newCommand(&cobra.Command{
		Use:   "show PACKAGE",
		Short: "Show what a catalog says of a package",
		Long: `Show what a catalog says of a package: its channels with their heads, what is deprecated
and, of the newest version, install modes, the kinds that come with it, what it requires
and whether the cluster has that, and the description.

Of a server, no more is read than this package. Where several catalogs have it, the one with
the highest priority is shown, or each of those that have the same.

Which rights the operator has is in the image of the bundle: --rights pulls that of the newest
version, and tells them in short. "kubectl extension install PACKAGE" prints all that it takes
to install it.`,
		Example: `  kubectl extension catalog show sample-operator
  kubectl extension catalog show sample-operator --rights
  kubectl extension catalog show sample-operator --catalog ./catalog -o json`,
	}, func(command *cobra.Command, _ string, offers []offer) (_ any, _ func(io.Writer) error, err error) {
		list := shownList{SchemaVersion: schemaVersion}
		first, others := preferred(offers)
		for _, one := range first {
			row, unreadable := describe(command, one, others)
			row.Preferred = len(first) == 1
			if rights && unreadable == nil {
				row.Rights, unreadable = o.rightsOf(command, row)
			}
			list.Packages, err = append(list.Packages, row), errors.Join(err, unreadable)
		}
		return list, func(to io.Writer) error { return printPackages(to, list.Packages) }, err
	})
	made.Flags().BoolVar(&rights, "rights", false, "Pull the newest version, and tell which rights the operator has.")
	return made
}

// rightsOf pulls the newest bundle of a package.
func (o *lookup) rightsOf(command *cobra.Command, row shown) (*packagecard.Rights, error) {
	if row.Newest == nil || row.Newest.Image == "" {
		return nil, fmt.Errorf("the rights of %q: catalog %q names no image", row.Name, row.Catalog)
	}
	rendering := bundlesource.Rendering{
		Namespace: anyNamespace, Certificates: func() (bundle.CertificateProvider, error) { return bundle.SelfManaged, nil },
	}
	var rendered bundle.Rendered
	var err error
	// Some bundles are for single namespaces alone, and have to be told which.
	for _, config := range []string{"", `{"watchNamespace": "` + anyNamespace + `"}`, `{"watchNamespaces": ["another"]}`} {
		rendering.Config = []byte(config)
		rendered, err = o.reading.Bundles().RenderImage(command.Context(), row.Newest.Image, rendering)
		if _, unfit := errors.AsType[*bundle.ConfigError](err); !unfit {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the rights of %q: %w", row.Newest.Bundle, err)
	}
	rights, err := packagecard.RightsOf(rendered.Given())
	return &rights, err
}

// anyNamespace stands for the one that a bundle would be installed to.
const anyNamespace = "operator"

func describe(command *cobra.Command, one offer, others []string) (shown, error) {
	details, err := packagecard.ReadDetails(command.Context(), bytes.NewReader(one.content), one.pkg.Name)
	if err != nil {
		return shown{Name: one.pkg.Name, Catalog: one.catalog, Priority: one.priority}, fmt.Errorf("catalog %q: %w", one.catalog, err)
	}
	return shownOf(one, cmp.Or(details, &packagecard.Details{}), others, clusterOf(command, one)), nil
}

func shownOf(one offer, details *packagecard.Details, others []string, cluster *requirement.Cluster) shown {
	notice := packagecard.Notice(one.pkg)
	row := shown{
		Name: one.pkg.Name, DisplayName: details.DisplayName, Provider: details.Provider,
		Catalog: one.catalog, Priority: one.priority, AlsoIn: others,
		Deprecated: notice != "", Deprecation: notice,
		Channels:     packagecard.Channels(one.pkg, details.DefaultChannel),
		InstallModes: details.InstallModes, Definitions: details.Definitions, RelatedImages: details.Images,
		Maturity: details.Maturity, Maintainers: details.Maintainers,
		Description: details.Description,
	}
	if found := one.verified; found != nil {
		row.Verified = &verified{Status: found.Status, Reason: found.Reason, Message: found.Message}
	}
	if versions := packagecard.Versions(one.pkg, cluster); len(versions) > 0 {
		row.Newest = &versions[0]
	}
	return row
}

func printPackages(to io.Writer, rows []shown) error {
	var text strings.Builder
	for i, row := range rows {
		if i > 0 {
			text.WriteString("\n")
		}
		row.print(&text)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func (s shown) print(to *strings.Builder) {
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(to, "%-14s %s\n", label, cli.Printable(value))
		}
	}
	line("Package:", s.Name)
	line("Display name:", s.DisplayName)
	line("Provider:", s.Provider)
	line("Catalog:", fmt.Sprintf("%s, priority %d", s.Catalog, s.Priority))
	if found := s.Verified; found != nil {
		line("Verified:", fmt.Sprintf("%s, %s: %s", found.Status, found.Reason, found.Message))
	}
	line("Also in:", strings.Join(s.AlsoIn, ", "))
	line("Deprecated:", s.Deprecation)
	s.printChannels(to)
	if newest := s.Newest; newest != nil {
		line("Newest:", cmp.Or(newest.Version, newest.Bundle))
		line("  Deprecated:", newest.Deprecated)
		for _, text := range newest.Requires {
			line("  Requires:", text)
		}
		for _, text := range newest.Lacking {
			line("  Not here:", text)
		}
	}
	line("Install modes:", strings.Join(s.InstallModes, ", "))
	line("Kinds:", strings.Join(s.Definitions, ", "))
	line("Maturity:", s.Maturity)
	line("Maintainers:", strings.Join(s.Maintainers, ", "))
	line("Images:", fmt.Sprintf("%d besides its own", s.RelatedImages))
	if rights := s.Rights; rights != nil {
		line("Rights:", fmt.Sprintf("%s everywhere, %s in namespaces", cli.Counted(rights.Everywhere, "rule"), cli.Counted(rights.InNamespaces, "rule")))
		for _, text := range rights.Sweeping {
			line("", text)
		}
	}
	s.printDescription(to)
}

func (s shown) printChannels(to *strings.Builder) {
	for i, channel := range s.Channels {
		if i == maxShownChannels {
			fmt.Fprintf(to, "%-14s and %d more\n", "", len(s.Channels)-i)
			return
		}
		label, name := "", channel.Name
		if i == 0 {
			label = "Channels:"
		}
		if channel.Default {
			name += " (default)"
		}
		text := fmt.Sprintf("%s: %s, %s", name, listed(channel.Heads), cli.Counted(channel.Bundles, "version"))
		if channel.Deprecated != "" {
			text += ", deprecated: " + channel.Deprecated
		}
		fmt.Fprintf(to, "%-14s %s\n", label, cli.Printable(text))
	}
}

func (s shown) printDescription(to *strings.Builder) {
	lines := strings.Split(strings.TrimSpace(s.Description), "\n")
	if s.Description == "" {
		return
	}
	to.WriteString("\n")
	for _, text := range lines[:min(len(lines), maxShownLines)] {
		fmt.Fprintln(to, cli.Printable(strings.ReplaceAll(strings.TrimRight(text, " \r\t"), "\t", "    ")))
	}
	if more := len(lines) - maxShownLines; more > 0 {
		fmt.Fprintf(to, "(%d more lines: -o json has them)\n", more)
	}
}
