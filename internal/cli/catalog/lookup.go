package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// lookup is the command line of commands about one package.
type lookup struct{ catalogFlags }

// newCommand gives a command the argument PACKAGE, and what answer makes of what there is of it:
// for programs, and as text. Its error is for what could not be read.
func (o *lookup) newCommand(command *cobra.Command, answer func(*cobra.Command, string, []offer) (any, func(io.Writer) error, error)) *cobra.Command {
	command.Args, command.ValidArgsFunction = cobra.ExactArgs(1), cobra.NoFileCompletions
	command.RunE = func(command *cobra.Command, args []string) error {
		offers, err := o.find(command, args[0])
		if len(offers) == 0 {
			return err
		}
		made, text, unread := answer(command, args[0], offers)
		return errors.Join(o.print(command, made, text), err, unread)
	}
	o.bind(command, "Format of the answer.")
	return command
}

// offer is a package as one catalog has it.
type offer struct {
	catalog  string
	priority int32
	content  []byte // its objects as JSON
	pkg      resolve.Package
	// verified is what ImagePolicies make of the image of the catalog; nil if none is about it.
	verified *metav1.Condition
	// explained is for an offer of a cluster: what is known of the cluster besides. It is nil
	// for others.
	explained func(context.Context) (*requirement.Cluster, []string)
}

// find gives what catalogs have of a package, those of the highest priority first. The error
// says why catalogs cannot be read, or that none has it, in which case there are no offers.
func (o *lookup) find(command *cobra.Command, name string) ([]offer, error) {
	offers, err := o.offers(command, name)
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return nil, program.Misuse(command, usage.Err)
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.catalog, b.catalog))
	})
	if len(offers) == 0 && err == nil {
		hint := strings.Join(append([]string{"kubectl extension catalog search TEXT"}, o.from...), " --catalog ")
		err = fmt.Errorf("no catalog has a package %q; to find one: %s", cli.Printable(name), cli.Printable(hint))
	}
	return offers, err
}

func (o *lookup) offers(command *cobra.Command, name string) ([]offer, error) {
	if err := o.check(command); err != nil {
		return nil, err
	}
	if len(o.from) > 0 {
		return o.offersFrom(command, name)
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return nil, err
	}
	catalogs, err := cluster.Catalogs(command.Context())
	if err != nil {
		return nil, err
	}
	var offers []offer
	var problems []error
	for _, catalog := range catalogs {
		pkg, err := cluster.Package(command.Context(), catalog, name)
		if err != nil {
			problems = append(problems, err)
		}
		if pkg == nil {
			continue
		}
		offers = append(offers, offer{
			catalog: catalog.Name, priority: catalog.Spec.Priority, content: pkg.Content, pkg: pkg.Resolved,
			verified: meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeVerified),
			explained: func(ctx context.Context) (*requirement.Cluster, []string) {
				found, err := cluster.ExplainPackage(ctx, pkg, anyOf(catalog.Name, name))
				if err != nil {
					return nil, []string{err.Error()}
				}
				return found.Request.Cluster, found.Unknown
			},
		})
	}
	return offers, errors.Join(problems...)
}

// offersFrom are those of catalogs that are named, without any cluster.
func (o *lookup) offersFrom(command *cobra.Command, name string) ([]offer, error) {
	reader, err := o.reading.Reader(command)
	if err != nil {
		return nil, err
	}
	var offers []offer
	var problems []error
	sources, err := catalogsource.ParseAll(o.from)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	for _, source := range sources {
		pkg, err := reader.Package(command.Context(), source, source.Name, name)
		if err != nil {
			problems = append(problems, cli.CatalogError(err))
		}
		if pkg != nil {
			offers = append(offers, offer{catalog: source.Name, content: pkg.Content, pkg: pkg.Resolved})
		}
	}
	return offers, errors.Join(problems...)
}

// anyOf is an extension that takes any version of a package from a catalog.
func anyOf(catalog, pkg string) *ocv1.ClusterExtension {
	return &ocv1.ClusterExtension{
		ObjectMeta: metav1.ObjectMeta{Name: pkg},
		Spec: ocv1.ClusterExtensionSpec{
			Namespace: pkg, ServiceAccount: ocv1.ServiceAccountReference{Name: pkg},
			Source: ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: &ocv1.CatalogFilter{
				PackageName: pkg, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: catalog}},
			}},
		},
	}
}

// preferred are the offers of the highest priority, and the names of the catalogs of others.
func preferred(offers []offer) (first []offer, others []string) {
	for _, one := range offers {
		if one.priority == offers[0].priority {
			first = append(first, one)
		} else {
			others = append(others, one.catalog)
		}
	}
	return first, others
}

// clusterOf is what requirements of an offer are held against; nil without a cluster. What of it
// is not known is said to people.
func clusterOf(command *cobra.Command, one offer) *requirement.Cluster {
	if one.explained == nil {
		return nil
	}
	cluster, unknown := one.explained(command.Context())
	for _, text := range unknown {
		fmt.Fprintln(command.ErrOrStderr(), cli.Printable("not known: "+text))
	}
	return cluster
}

// listed are texts in a line, or "-" for none.
func listed(texts []string) string {
	return cmp.Or(cli.Printable(strings.Join(texts, ", ")), "-")
}
