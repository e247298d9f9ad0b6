package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/chartlookup"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Request asks what the controller would install for an extension next.
type Request struct {
	// Name is that of the extension.
	Name string
	// File is the extension as a file has it; nil for the one on the cluster.
	File *ocv1.ClusterExtension

	// Version stands in the place of the range of versions in the spec; empty for that.
	// AnyWay goes there whether or not an upgrade leads there.
	Version string
	AnyWay  bool

	// Assumed are extensions that are taken to be on the cluster besides, with what their status
	// says to be installed: what they bring is what others require.
	Assumed []ocv1.ClusterExtension

	// Bundles are read with the credentials of whoever asks.
	Bundles bundlesource.Reader
	// Certificates says who issues the certificates of webhooks, on a cluster that
	// serves the kinds of the mapper.
	Certificates func(meta.RESTMapper) (bundle.CertificateProvider, error)
	// Before has the objects of the bundle to upgrade from; nil for what is installed.
	Before func(context.Context, bundlesource.Rendering) ([]*unstructured.Unstructured, error)
}

// Plan is what the controller would install for an extension next, and what is there.
type Plan struct {
	controller.Plan

	Extension *ocv1.ClusterExtension

	// Deleting says that the extension on the cluster is being deleted; empty if it is not.
	Deleting string

	// Before are the objects that may be on the cluster now, and HooksBefore the hooks of what is
	// installed.
	Before      []*unstructured.Unstructured
	HooksBefore []hook.Hook
	helmCRDs    []string
	ran         object.Ran
	contentNow  []*unstructured.Unstructured // of Before, without hooks

	// UnknownBefore says why these are not known, or only guessed; empty if they are known.
	UnknownBefore string

	// IsInstalled says that the choice is what is installed, by the release records, and Progress
	// is how far its hooks have come; nil if none is due, or if that is not known.
	IsInstalled bool
	Progress    *hook.Progress

	// Meanwhile are the objects of the installed bundle with the configuration of the spec, if
	// it is that which is wanted until the choice does not wait any more.
	Meanwhile []*unstructured.Unstructured

	// asked is the version that whoever asks has named.
	asked string

	mapper meta.RESTMapper
}

// Plan makes the choice for an extension, and the objects of the bundle that is chosen.
func (c *Cluster) Plan(ctx context.Context, request Request) (Plan, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err != nil {
		return Plan{}, fmt.Errorf("setting up a client: %w", err)
	}
	issuer := func() (bundle.CertificateProvider, error) { return request.Certificates(mapper) }
	c.prepare(request, issuer)
	lookup, err := c.lookup(mapper)
	if err != nil {
		return Plan{}, err
	}
	c.reconciler.Lookup = func(object.Owner) (bundle.ChartLookup, error) { return lookup, nil }
	found, err := c.extension(ctx, request)
	if err != nil {
		return Plan{}, err
	}
	ext := found.wanted
	catalog := ext.Spec.Source.Catalog
	if request.Version != "" && catalog == nil {
		return Plan{}, fmt.Errorf("ClusterExtension %q names a bundle by its image: no version can be asked for, but another image in spec.source.bundle.ref", ext.Name)
	}
	if request.Version != "" {
		catalog.Version = request.Version
		if request.AnyWay {
			catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
		}
	}
	made, err := c.reconciler.Plan(ctx, ext)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Plan: made, Extension: ext, Deleting: deletingText(found.live), mapper: mapper, asked: request.Version}
	plan.Unknown = slices.Concat(plan.Unknown, c.unknown)
	rendering := bundlesource.Rendering{Namespace: ext.Spec.Namespace, Certificates: issuer, Release: c.release(ext.Name), Lookup: lookup}
	if inline := ext.Spec.Config; inline != nil && inline.Inline != nil {
		rendering.Config = inline.Inline.Raw
	}
	plan.Meanwhile = c.meanwhile(ctx, &plan, request, rendering)
	if request.Before != nil {
		plan.Before, err = request.Before(ctx, rendering)
		return plan, err
	}
	var before release.RecordedContent
	if plan.UnknownBefore = found.unread; found.unread == "" {
		before, plan.UnknownBefore = c.installed(ctx, plan, request.Bundles, rendering)
		before.Objects = append(c.inherited(ctx, &plan), before.Objects...)
	}
	err = c.complete(ctx, &plan, before)
	return plan, err
}

// complete changes what the plan has of the choice by what is recorded and installed.
func (c *Cluster) complete(ctx context.Context, plan *Plan, before release.RecordedContent) error {
	c.addStanding(ctx, plan)
	plan.addBefore(before)
	return c.selectPods(ctx, plan)
}

// selectPods changes the objects of plan to the selection that the controller would choose. It
// lists Deployments as the user.
func (c *Cluster) selectPods(ctx context.Context, plan *Plan) error {
	if !plan.HasOperator || !bundle.HasCalledService(plan.Objects) {
		return nil
	}
	before, isInstalled := bundle.Selects(plan.Before), plan.Extension.Status.Install != nil
	var shared []bundle.SharedService
	if before == bundle.SelectAuthored {
		client, err := usage.AppsClient(c.cfg.REST, c.through)
		if err != nil {
			return fmt.Errorf("setting up a client: %w", err)
		}
		live, err := usage.Deployments(ctx, client, plan.Owner.Namespace)
		if err != nil {
			plan.Unknown = append(plan.Unknown, "whether Services of the bundle select pods of others: "+err.Error())
		}
		shared = bundle.Shared(plan.Objects, live, plan.Owner.Labels())
	}
	selection := bundle.FirstSelection(shared)
	if isInstalled {
		selection = before.Next(shared, false)
	}
	for _, one := range shared {
		if one.Fixed {
			plan.Warnings = append(plan.Warnings, one.Warning())
		}
	}
	var err error
	plan.Objects, err = bundle.WithSelection(plan.Objects, selection)
	return err
}

// inherited returns what the extension that this one adopts has left.
func (c *Cluster) inherited(ctx context.Context, plan *Plan) []*unstructured.Unstructured {
	found, err := release.Inherited(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, plan.mapper, plan.Owner)
	if err != nil {
		plan.Unknown = append(plan.Unknown, fmt.Sprintf("which objects ClusterExtension %q has left: %v", plan.Owner.Adopts, err))
	}
	return found
}

// addBefore adds what may be on the cluster, when it is known what there is to be.
func (p *Plan) addBefore(before release.RecordedContent) {
	p.HooksBefore, p.contentNow = hook.WithoutTests(before.Hooks), before.Objects
	p.helmCRDs, p.ran = before.HelmCRDs, before.Ran
	p.Before = release.Leftovers{Content: before.Objects, Hooks: before.HooksLeft}.Before(p.Owner, p.Objects, p.Hooks)
}

// prepare has the reconciler take what a request has.
func (c *Cluster) prepare(request Request, issuer func() (bundle.CertificateProvider, error)) {
	c.reconciler.Bundles, c.reconciler.Certificates = onceBundles{request.Bundles}, issuer
	c.reconciler.Charts = request.Bundles.Charts
	c.reconciler.Neighbours = controller.NewNeighbours(assuming{Reader: c.reconciler.Client, extensions: request.Assumed}, c.reconciler.Catalogs)
}

// assuming reads a cluster on which there are more extensions.
type assuming struct {
	client.Reader

	extensions []ocv1.ClusterExtension
}

func (a assuming) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := a.Reader.List(ctx, list, opts...)
	if extensions, isOfThem := list.(*ocv1.ClusterExtensionList); isOfThem && err == nil {
		extensions.Items = append(extensions.Items, a.extensions...)
	}
	return err
}

// addStanding takes what is recorded of the choice, if it is installed or begun: its templates are
// not rendered again for it, and what they make up would be another one. Hooks have run in part
// then, or all of them.
func (c *Cluster) addStanding(ctx context.Context, plan *Plan) {
	if !plan.IsChart || plan.Extension.UID == "" || plan.UnknownBefore != "" {
		return
	}
	standing, err := release.Toward(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, plan.Owner, plan.Revision)
	if err != nil {
		plan.Unknown = append(plan.Unknown, fmt.Sprintf("what is recorded of the choice: %v", err))
		return
	}
	if len(standing.Content.Objects) > 0 {
		plan.Objects, plan.Hooks = standing.Content.Objects, standing.Content.Hooks
		plan.DependsOnCluster, plan.LooksInVain = false, false // as whoever asks sees it
	}
	plan.IsInstalled = standing.IsInstalled
	if standing.Hooks != nil {
		plan.Progress = &standing.Hooks.Progress
	}
}

// lookup reads the cluster for templates, as whoever asks.
func (c *Cluster) lookup(mapper meta.RESTMapper) (bundle.ChartLookup, error) {
	client, err := chartlookup.ClientFor(c.cfg.REST, c.through)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return chartlookup.New(client, mapper, "you"), nil
}

// release is what a chart gets to know that is there already. APIs that are not known are
// those of any cluster, and said to be unknown by others.
func (c *Cluster) release(name string) bundle.ChartRelease {
	apis, _ := c.reconciler.ServedAPIs()
	return bundle.ChartRelease{Name: name, IsUpgrade: true, Kubernetes: c.reconciler.Platform.Kubernetes(), APIs: apis}
}

// onceBundles pulls images with the credentials of whoever asks.
type onceBundles struct{ bundlesource.Reader }

var _ controller.Bundles = onceBundles{}

func (b onceBundles) Fetch(ctx context.Context, _ object.Owner, wanted controller.BundleImage) (controller.Files, error) {
	if files, isKnown := b.Known[wanted.Ref]; isKnown {
		return controller.Files{FS: files, Digest: imageref.Digest(wanted.Ref).String(), Close: func() {}}, nil
	}
	request := image.Request{Ref: wanted.Ref, Select: image.BundleContent, Digest: digest.Digest(wanted.Digest)}
	found, err := image.Once(ctx, b.Images, request)
	if err != nil {
		return controller.Files{}, err
	}
	return controller.Files{FS: found.Files, Digest: found.Digest, Close: found.Close}, nil
}

// Abandon has nothing to do: there is somebody who waits for what is fetched.
func (onceBundles) Abandon(string) {}

// Verdict says nothing of signatures: policies and keys are the controller's to read.
func (onceBundles) Verdict(context.Context, object.Owner, controller.BundleImage) (imagepolicy.Verdict, bool, error) {
	return imagepolicy.Verdict{}, true, nil
}

// extensions are an extension as somebody asks about it, and as the cluster has it.
type extensions struct {
	// wanted is that on the cluster, or the one of a file with what is installed of it now.
	wanted *ocv1.ClusterExtension

	// live is nil if there is none, or if it may not be read.
	live *ocv1.ClusterExtension

	// unread says why it is not known what is on the cluster; empty if it is.
	unread string
}

// extension fails if there is no file, and the extension cannot be read.
func (c *Cluster) extension(ctx context.Context, request Request) (extensions, error) {
	live := &ocv1.ClusterExtension{}
	err := c.reconciler.Client.Get(ctx, types.NamespacedName{Name: request.Name}, live)
	if request.File == nil {
		if err != nil {
			return extensions{}, fmt.Errorf("reading ClusterExtension %q: %w", request.Name, err)
		}
		return extensions{wanted: live.DeepCopy(), live: live}, nil
	}
	ext := request.File.DeepCopy()
	switch {
	case apierrors.IsNotFound(err):
		return extensions{wanted: ext}, nil
	case err != nil:
		return extensions{wanted: ext, unread: fmt.Sprintf("whether ClusterExtension %q is installed: %v", ext.Name, err)}, nil
	}
	ext.UID, ext.Status.Install = live.UID, live.Status.Install
	return extensions{wanted: ext, live: live}, nil
}

// deletingText is for an extension that is nil, or is on the cluster.
func deletingText(live *ocv1.ClusterExtension) string {
	if live == nil || live.DeletionTimestamp == nil {
		return ""
	}
	text := fmt.Sprintf("ClusterExtension %q is being deleted since %s", live.Name, live.DeletionTimestamp.UTC().Format(time.RFC3339))
	if ready := meta.FindStatusCondition(live.Status.Conditions, ocv1.TypeReady); ready != nil && ready.Message != "" {
		text += fmt.Sprintf("; Ready is %s by %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	return text
}

// installed gives the objects that may be on the cluster now, or why they are not known.
// The release records have them; for those who may not read these, the bundle that
// status names.
func (c *Cluster) installed(ctx context.Context, plan Plan, bundles bundlesource.Reader, rendering bundlesource.Rendering) (release.RecordedContent, string) {
	ext := plan.Extension
	if ext.UID == "" {
		return release.RecordedContent{}, ""
	}
	recorded, recordErr := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, plan.Owner)
	if recordErr == nil {
		recordErr = c.checkRecorded(ext, recorded.Revisions)
	}
	if recordErr == nil {
		return recorded, ""
	}
	install := ext.Status.Install
	if install == nil {
		return release.RecordedContent{}, fmt.Sprintf("whether anything is installed: %v; status names no bundle", recordErr)
	}
	unknown := func(why string) string {
		return fmt.Sprintf("what bundle %q consists of, which is installed: %v; %s", install.Bundle.Name, recordErr, why)
	}
	reference := imageIn(plan.Catalogs, install.Bundle.Name)
	if reference == "" {
		return release.RecordedContent{}, unknown("no catalog has it")
	}
	rendered, err := bundles.Render(ctx, reference, rendering)
	if err != nil {
		return release.RecordedContent{}, unknown(err.Error())
	}
	guessed := release.RecordedContent{Objects: ownedBy(plan.Owner, rendered.Objects), Hooks: rendered.Hooks}
	return guessed, unknown("it is taken to be what the catalogs have under that name")
}

// checkRecorded fails if nothing is recorded of an extension that has something installed. The
// namespace is most likely another one then.
func (c *Cluster) checkRecorded(ext *ocv1.ClusterExtension, revisions int) error {
	installed := ext.Status.Install
	if installed == nil || revisions > 0 {
		return nil
	}
	return fmt.Errorf("status says that %q is installed, and there are no release records of it in namespace %q: --system-namespace has to be that of the controller",
		installed.Bundle.Name, c.cfg.SystemNamespace)
}

// ownedBy gives objects of a bundle the marks that they have where they are installed.
func ownedBy(owner object.Owner, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	owned := make([]*unstructured.Unstructured, 0, len(objects))
	for _, one := range objects {
		owned = append(owned, owner.Own(one))
	}
	return owned
}

// meanwhile gives the objects of the installed bundle as the spec wants them, if the choice waits
// for something; none if these are those of the choice.
func (c *Cluster) meanwhile(ctx context.Context, plan *Plan, request Request, rendering bundlesource.Rendering) []*unstructured.Unstructured {
	install := plan.Extension.Status.Install
	if plan.Waits == "" || install == nil || plan.Resolution == nil || plan.Resolution.Identity.Name == install.Bundle.Name {
		return nil
	}
	unknown := func(why string) []*unstructured.Unstructured {
		plan.Unknown = append(plan.Unknown, fmt.Sprintf("what bundle %q consists of with the configuration of the spec, which is installed until then: %s", install.Bundle.Name, why))
		return nil
	}
	reference := imageIn(plan.Catalogs, install.Bundle.Name)
	if reference == "" {
		return unknown("no catalog has it")
	}
	rendered, err := request.Bundles.Render(ctx, reference, rendering)
	if err != nil {
		return unknown(err.Error())
	}
	return rendered.Objects
}

// imageIn is the image of a bundle in the first catalog that has it.
func imageIn(catalogs []resolve.Catalog, name string) string {
	for _, catalog := range catalogs {
		if catalog.Package == nil {
			continue
		}
		if reference := catalog.Package.Image(name); reference != "" {
			return reference
		}
	}
	return ""
}

// Rights are those that it takes to install what was chosen, and to keep what is installed until
// then or, if nothing was chosen, from now on.
func (p Plan) Rights() ([]permission.Document, error) {
	content := permission.Content{Wanted: p.Objects, Hooks: hook.WithoutTests(p.Hooks), Meanwhile: p.Meanwhile, Before: p.Before, Replaceable: p.Owner.Replaceable}
	if p.Resolution == nil {
		if content.Wanted = p.Before; len(p.Before) == 0 {
			return nil, errors.New("no bundle is chosen, and what is installed is not known: there is nothing to print rights for")
		}
	}
	if p.Owner.Imported {
		content.Claimed = append(slices.Clone(content.Wanted), p.Before...)
	}
	subject := permission.Subject{Extension: p.Extension.Name, Namespace: p.Owner.Namespace, ServiceAccount: p.Owner.ServiceAccount}
	grants, err := preflight.Grants(permission.ServedOrGuessed(p.mapper), subject, content)
	if _, ok := errors.AsType[*preflight.OwnServiceAccountError](err); ok {
		err = fmt.Errorf("%w: spec.serviceAccount.name has to be another one", err)
	}
	return grants, err
}
