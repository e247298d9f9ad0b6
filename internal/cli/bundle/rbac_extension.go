package bundle

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// runForExtension prints the rights for what the controller would install for an
// extension next, and for the way there. Standard error has what was chosen, and what
// is not known.
func (o *rbac) runForExtension(command *cobra.Command, args []string) error {
	for _, flag := range []string{flagNamespace, flagServiceAccount, flagName, flagConfig, flagReplace} {
		if command.Flags().Changed(flag) {
			return program.Misuse(command, fmt.Errorf("the spec of the ClusterExtension says what --%s does: leave it out", flag))
		}
	}
	request, err := o.request(command, args)
	if err != nil {
		return err
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	plan, err := cluster.Plan(command.Context(), request)
	if err != nil {
		return err
	}
	printPlan(command.ErrOrStderr(), plan)
	grants, err := plan.Rights()
	if err != nil {
		return err
	}
	return cli.PrintDocuments(command.OutOrStdout(), o.output, grants)
}

// request asks for the extension of a file, or for the one of a name.
func (o *rbac) request(command *cobra.Command, args []string) (request inspect.Request, err error) {
	request.Version, request.AnyWay = o.version, true
	request.Bundles, request.Certificates = o.images.Bundles(), o.issuer(command)
	if o.before != "" {
		request.Before = o.renderBefore(command)
	}
	if o.file == "" {
		request.Name, err = cli.ExtensionName(args)
		return request, err
	}
	if request.File, err = cli.ReadExtension(command, o.file); err == nil {
		request.Name = request.File.Name
	}
	return request, err
}

// issuer is what the flag says, or else what is on the cluster.
func (o *rbac) issuer(command *cobra.Command) func(meta.RESTMapper) (bundle.CertificateProvider, error) {
	return func(mapper meta.RESTMapper) (bundle.CertificateProvider, error) {
		if command.Flags().Changed(flagCertificates) {
			return providerOf(o.certificates), nil
		}
		provider, err := webhookcert.ProviderOn(mapper)
		if err != nil {
			err = fmt.Errorf("who issues certificates on the cluster is not known (--%s says it): %w", flagCertificates, err)
		}
		return provider, err
	}
}

// missing says what rights may lack when what is installed is not known.
func missing(plan inspect.Plan) string {
	if len(plan.Before) > 0 {
		return ": without --from, rights to delete what an upgrade drops may be missing"
	}
	return ": without --from, there are no rights to delete what an upgrade drops"
}

// printPlan says to people what the rights are for.
func printPlan(to io.Writer, plan inspect.Plan) {
	text := "no bundle is chosen, and the rights are those for what is installed"
	if chosen := plan.Resolution; chosen != nil {
		text = "the rights are those for " + cli.Chosen(chosen.Identity.Name, chosen.Identity.Version, chosen.Catalog, chosen.Image)
		if installed := plan.Extension.Status.Install; installed != nil && installed.Bundle.Name != chosen.Identity.Name {
			text += fmt.Sprintf(", and for the upgrade from %q", installed.Bundle.Name)
			if len(plan.Meanwhile) > 0 {
				text += ", which they keep until then"
			}
		}
	}
	if plan.Err != nil {
		text += ": " + plan.Err.Error()
	}
	fmt.Fprintln(to, cli.Printable(text))
	unknown := plan.Unknown
	if plan.UnknownBefore != "" {
		unknown = append(unknown, plan.UnknownBefore+missing(plan))
	}
	if plan.DependsOnCluster {
		fmt.Fprintln(to, cli.UnknownForLookup)
	}
	for _, line := range unknown {
		fmt.Fprintln(to, cli.Printable("not known: "+line))
	}
}
