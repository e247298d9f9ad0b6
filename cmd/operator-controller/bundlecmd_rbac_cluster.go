package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// onceBundles pulls images with the credentials of whoever calls the command.
type onceBundles struct{ content contentFlags }

var _ controller.Bundles = onceBundles{}

func (b onceBundles) Fetch(ctx context.Context, _ controller.Owner, wanted controller.BundleImage) (controller.Files, error) {
	request := image.Request{Ref: wanted.Ref, Select: image.BundleContent, Digest: digest.Digest(wanted.Digest)}
	found, err := image.Once(ctx, b.content.images, request)
	if err != nil {
		return controller.Files{}, err
	}
	return controller.Files{FS: found.Files, Digest: found.Digest, Close: found.Close}, nil
}

// Abandon has nothing to do: there is somebody who waits for what is fetched.
func (onceBundles) Abandon(string) {}

// runForExtension prints the rights for what the controller would install for an
// extension next, and for the way there. Standard error has what was chosen, and what
// is not known.
func (o *bundleRBAC) runForExtension(command *cobra.Command, args []string) error {
	for _, flag := range []string{flagNamespace, flagServiceAccount, flagName, flagConfig, flagReplace} {
		if command.Flags().Changed(flag) {
			return misuse(command, fmt.Errorf("the spec of the ClusterExtension says what --%s does: leave it out", flag))
		}
	}
	ext, err := o.extensionFrom(command, args)
	if err != nil {
		return err
	}
	ctx := command.Context()
	reader, mapper, err := o.planner(command)
	if err != nil {
		return err
	}
	if ext, err = o.live(ctx, reader, ext); err != nil {
		return err
	}
	plan, err := reader.Plan(ctx, ext)
	if err != nil {
		return err
	}
	before, err := o.installed(ctx, reader, ext, plan)
	if err != nil {
		return err
	}
	tell(command.ErrOrStderr(), ext, plan, append(plan.Unknown, reader.unknown...))
	subject := permission.Subject{Extension: ext.Name, Namespace: plan.Owner.Namespace, ServiceAccount: plan.Owner.ServiceAccount}
	content, err := contentOf(plan, before, subject)
	if err != nil {
		return err
	}
	return printRights(command.OutOrStdout(), permission.ServedOrGuessed(mapper), subject, content)
}

// planner reads the cluster with the rights of whoever calls the command, and pulls
// images as well. The mapper is the cluster's.
func (o *bundleRBAC) planner(command *cobra.Command) (*clusterReader, meta.RESTMapper, error) {
	reader, err := o.access.reader(command.Context())
	if err != nil {
		return nil, nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(reader.config, reader.through)
	if err != nil {
		return nil, nil, fmt.Errorf("setting up a client: %w", err)
	}
	reader.Bundles = onceBundles{content: o.render.content}
	reader.Certificates = func() (bundle.CertificateProvider, error) {
		if command.Flags().Changed(flagCertificates) {
			return o.render.provider()
		}
		provider, err := webhookCertificates(mapper)
		if err != nil {
			err = fmt.Errorf("who issues certificates on the cluster is not known (--%s says it): %w", flagCertificates, err)
		}
		return provider, err
	}
	return reader, mapper, nil
}

// contentOf is what was chosen or, if nothing was, what is installed and kept.
func contentOf(plan controller.Plan, before []*unstructured.Unstructured, subject permission.Subject) (permission.Content, error) {
	content := permission.Content{Wanted: plan.Objects, Before: before, Replaceable: plan.Owner.Replaceable}
	if plan.Resolution == nil {
		content.Wanted = before
	}
	if len(content.Wanted) == 0 {
		return content, errors.New("no bundle is chosen, and what is installed is not known: there is nothing to print rights for")
	}
	if slices.ContainsFunc(content.Wanted, isInstaller(subject)) {
		return content, fmt.Errorf("the bundle has a ServiceAccount %q of its own: spec.serviceAccount.name has to be another one", subject.ServiceAccount)
	}
	return content, nil
}

// extensionFrom is the extension of a file, or no more than the name of one.
func (o *bundleRBAC) extensionFrom(command *cobra.Command, args []string) (*ocv1.ClusterExtension, error) {
	if o.file != "" {
		ext, err := readExtension(o.file, command.InOrStdin())
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--filename %s: %w", o.file, err)}
		}
		return ext, nil
	}
	name, err := extensionName(args)
	if err != nil {
		return nil, misuse(command, err)
	}
	ext := &ocv1.ClusterExtension{}
	ext.Name = name
	return ext, nil
}

// live is the extension as it is on the cluster, or the one of a file with what is
// installed of it now.
func (o *bundleRBAC) live(ctx context.Context, reader *clusterReader, ext *ocv1.ClusterExtension) (*ocv1.ClusterExtension, error) {
	found := &ocv1.ClusterExtension{}
	err := reader.Client.Get(ctx, client.ObjectKeyFromObject(ext), found)
	if o.file == "" {
		if err != nil {
			err = fmt.Errorf("reading ClusterExtension %q: %w", ext.Name, err)
		}
		return found, err
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		reader.unknown = append(reader.unknown, fmt.Sprintf("whether ClusterExtension %q is installed: %v", ext.Name, err))
	default:
		ext.UID, ext.Status.Install = found.UID, found.Status.Install
	}
	return ext, nil
}

// installed gives the objects that may be on the cluster now. The release records
// have them; for those who may not read these, the bundle that status names. To know
// neither is no error.
func (o *bundleRBAC) installed(ctx context.Context, reader *clusterReader, ext *ocv1.ClusterExtension, plan controller.Plan) ([]*unstructured.Unstructured, error) {
	rendering := rendering{content: o.render.content, namespace: ext.Spec.Namespace, certificates: reader.Certificates}
	var config []byte
	if inline := ext.Spec.Config; inline != nil && inline.Inline != nil {
		config = inline.Inline.Raw
	}
	if o.before != "" {
		return o.rendersBefore(ctx, rendering, config)
	}
	if ext.UID == "" {
		return nil, nil
	}
	recorded, recordErr := release.Recorded(ctx, reader.config, reader.through, o.access.systemNamespace, object.Owner(plan.Owner))
	if recordErr == nil {
		return recorded, nil
	}
	install := ext.Status.Install
	if install == nil {
		return nil, nil
	}
	reference := imageIn(plan, install.Bundle.Name)
	if reference == "" {
		reader.unknown = append(reader.unknown, unknownInstalled(install.Bundle.Name, recordErr, "no catalog has it"))
		return nil, nil
	}
	objects, err := rendering.render(ctx, reference, config)
	if err != nil {
		reader.unknown = append(reader.unknown, unknownInstalled(install.Bundle.Name, recordErr, err.Error()))
	}
	return objects, nil
}

func unknownInstalled(name string, recordErr error, bundle string) string {
	return fmt.Sprintf("what bundle %q consists of, which is installed: %v; %s: "+
		"without --from, there are no rights to delete what an upgrade drops", name, recordErr, bundle)
}

// imageIn is the image of a bundle in the first catalog that has it.
func imageIn(plan controller.Plan, name string) string {
	for _, catalog := range plan.Catalogs {
		if catalog.Package == nil {
			continue
		}
		if reference := catalog.Package.Image(name); reference != "" {
			return reference
		}
	}
	return ""
}

// tell says to people what the rights are for.
func tell(to io.Writer, ext *ocv1.ClusterExtension, plan controller.Plan, unknown []string) {
	text := "no bundle is chosen, and the rights are those for what is installed"
	if chosen := plan.Resolution; chosen != nil {
		text = fmt.Sprintf("the rights are those for %q version %q from catalog %q", chosen.Identity.Name, chosen.Identity.Version, chosen.Catalog)
		if installed := ext.Status.Install; installed != nil && installed.Bundle.Name != chosen.Identity.Name {
			text += fmt.Sprintf(", and for the upgrade from %q", installed.Bundle.Name)
		}
	}
	if plan.Err != nil {
		text += ": " + plan.Err.Error()
	}
	for _, line := range append([]string{text}, prefixed("not known: ", unknown)...) {
		fmt.Fprintln(to, printable(line))
	}
}

func prefixed(prefix string, lines []string) []string {
	result := make([]string, 0, len(lines))
	for _, line := range lines {
		result = append(result, prefix+line)
	}
	return result
}
