// Package verify has the command that says what ImagePolicies make of an image.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/policyfile"
)

// verify is the command line.
type verify struct {
	output  *cli.Choice
	files   []string
	images  cli.Images
	cluster cli.Cluster
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := verify{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "verify IMAGE | clustercatalog/NAME | clusterextension/NAME",
		Short: "Say whether ImagePolicies accept an image, and why not",
		Long: `Say whether ImagePolicies accept an image: which of them decide, who has signed it as each
of their authorities sees it, and which attestations it has of those that are demanded.

Of a ClusterCatalog, the image that is served is judged, and the one that its spec names now; of
a ClusterExtension, the image that is installed, and the one that would be installed next.

The policies are those of the cluster, with your own rights: you need to list ImagePolicies, and
to get the Secrets that they name, in the namespace of the controller. For who may not, --policy
names files with policies and Secrets in their place; for an IMAGE, no cluster is asked then.

The signatures are asked for with what this machine has of credentials, mirrors and certificates;
the controller may have others. A policy.json counts beside the policies, as --signature-policy
names it or as this machine has one. Of an index, the image for this machine's processor is looked
at, as well as the index itself.

That an image is refused is an error; that a policy warns of it is none.`,
		Example: `  kubectl extension verify registry.example/my-operator:v1.0.0
  kubectl extension verify clustercatalog/sample-catalog
  kubectl extension verify clusterextension/sample-operator -o json
  kubectl extension verify registry.example/my-operator:v1.0.0 --policy policies.yaml --policy secrets.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: o.run,
	}
	command.ValidArgsFunction = o.complete
	o.output.Bind(command, "o", "Format of the answer.")
	command.Flags().StringArrayVar(&o.files, "policy", nil, "File with ImagePolicies and Secrets in place of those of the cluster. Repeat it for several.")
	o.images.Bind(command.Flags())
	o.cluster.BindInspect(command)
	return command
}

func (o *verify) complete(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if kind, _, slash := strings.Cut(begun, "/"); slash && cli.IsCatalogKind(kind) || len(args) == 1 && cli.IsCatalogKind(args[0]) {
		return o.cluster.CompleteCatalogs(command, args, begun)
	}
	return o.cluster.CompleteNames("clusterextension/", cobra.ShellCompDirectiveNoFileComp)(command, args, begun)
}

func (o *verify) run(command *cobra.Command, args []string) error {
	answer, err := o.judge(command, args)
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return program.Misuse(command, usage.Err)
	}
	if err != nil {
		return err
	}
	return answer.print(command, o.output)
}

// wanted is an image to judge.
type wanted struct {
	// what it is of the object; empty for an image that the command line names.
	what string

	image.Request
}

func (o *verify) judge(command *cobra.Command, args []string) (*answer, error) {
	var policies *policyfile.File
	var err error
	if len(o.files) > 0 {
		if policies, err = o.readPolicies(command); err != nil {
			return nil, err
		}
	}
	images, unknown, err := o.imagesOf(command, args, policies != nil)
	if err != nil {
		return nil, err
	}
	set, err := o.policiesFor(command.Context(), policies, images)
	if err != nil {
		return nil, err
	}
	made := &answer{SchemaVersion: schemaVersion, Images: []judged{}, Unknown: unknown}
	for _, one := range images {
		explained, err := o.images.Explain(command.Context(), set, one.Request)
		if ctx := command.Context(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		made.add(one, explained, err)
	}
	return made, nil
}

// readPolicies reads what is to take the place of the policies of the cluster.
func (o *verify) readPolicies(command *cobra.Command) (*policyfile.File, error) {
	file, err := cli.ReadPolicies(command, o.files)
	if err != nil {
		return nil, err
	}
	if refused := file.Refused(); len(refused) > 0 {
		return nil, fmt.Errorf("%s\nTry 'kubectl extension policy check %s'", refused[0], strings.Join(o.files, " "))
	}
	return file, nil
}

// policiesFor are the policies that decide about the images.
func (o *verify) policiesFor(ctx context.Context, file *policyfile.File, images []wanted) (*imagepolicy.Set, error) {
	if file != nil {
		return file.Set(), nil
	}
	if len(images) == 0 {
		return nil, nil
	}
	reader, err := o.reader()
	if err != nil {
		return nil, err
	}
	var repositories []string
	for _, one := range images {
		if repository, err := image.Repository(one.Ref); err == nil { // it is said in its place
			repositories = append(repositories, repository)
		}
	}
	set, err := reader.PoliciesFor(ctx, repositories)
	if unread, ok := errors.AsType[*inspect.UnreadSecretError](err); ok && apierrors.IsForbidden(unread.Err) {
		err = fmt.Errorf("%w\nYou may not read what is trusted. Ask for the right to get that Secret, or give the policies with their Secrets by --policy FILE", err)
	}
	return set, err
}

func (o *verify) reader() (*inspect.PolicyReader, error) {
	config, err := o.cluster.InspectConfig()
	if err != nil {
		return nil, err
	}
	return inspect.NewPolicyReader(config)
}

// imagesOf are the images of what the command line names, and what could not be found out.
func (o *verify) imagesOf(command *cobra.Command, args []string, offline bool) (images []wanted, unknown []string, err error) {
	kind, _, _ := strings.Cut(args[0], "/")
	switch {
	case cli.IsExtensionKind(kind):
		name, err := cli.ExtensionName(args)
		if err != nil {
			return nil, nil, &program.UsageError{Err: err}
		}
		return o.imagesOfExtension(command.Context(), name)
	case cli.IsCatalogKind(kind):
		name, err := cli.CatalogName(args)
		if err != nil {
			return nil, nil, &program.UsageError{Err: err}
		}
		images, err := o.imagesOfCatalog(command.Context(), name)
		return images, nil, err
	}
	if len(args) > 1 {
		return nil, nil, &program.UsageError{Err: fmt.Errorf("%q is one image too many", args[1])}
	}
	if err := image.CheckReference(args[0]); err != nil {
		return nil, nil, &program.UsageError{Err: fmt.Errorf("%w: an image has a registry in its name, and an object is clustercatalog/NAME or clusterextension/NAME", err)}
	}
	if offline {
		if err := o.cluster.CheckUnused(command); err != nil {
			return nil, nil, &program.UsageError{Err: err}
		}
	}
	return []wanted{{Request: image.Request{Ref: args[0], Select: image.BundleContent}}}, nil, nil
}

func (o *verify) imagesOfCatalog(ctx context.Context, name string) ([]wanted, error) {
	reader, err := o.reader()
	if err != nil {
		return nil, err
	}
	catalog, err := reader.Catalog(ctx, name)
	if err != nil {
		return nil, err
	}
	var images []wanted
	if served := catalog.Status.ResolvedSource; served != nil && served.Image != nil {
		images = append(images, wanted{"served", image.Request{Ref: served.Image.Ref, Select: image.CatalogContent}})
	}
	if named := catalog.Spec.Source.Image; named != nil {
		images = append(images, wanted{"named by the spec", image.Request{Ref: named.Ref, Select: image.CatalogContent}})
	}
	return images, nil
}

func (o *verify) imagesOfExtension(ctx context.Context, name string) (images []wanted, unknown []string, err error) {
	cluster, err := o.cluster.Inspect(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, err := cluster.Explain(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	installed, err := cluster.Installed(ctx, name)
	if err != nil {
		unknown = append(unknown, err.Error())
	}
	if installed != nil {
		images = append(images, wanted{"installed", image.Request{Ref: installed.Image, Digest: digest.Digest(installed.Digest), Select: image.BundleContent}})
	}
	next := found.Image
	switch {
	case found.Err != nil:
		unknown = append(unknown, "what would be installed next: "+found.Err.Error())
		next = ""
	case found.Resolution != nil:
		next = found.Resolution.Image
	}
	if next != "" {
		images = append(images, wanted{"installed next", image.Request{Ref: next, Select: image.BundleContent}})
	}
	return slices.DeleteFunc(images, func(w wanted) bool { return w.Ref == "" }), unknown, nil
}
