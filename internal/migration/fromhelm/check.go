package fromhelm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// Options are the options of a move.
type Options struct {
	// Image is the reference of the chart; empty to look for it in the catalogs.
	Image string

	// Repository is the prefix of images: REPOSITORY/CHART:VERSION. Empty if Image is set, or for catalogs.
	Repository string

	// ServiceAccount is the name in the spec of the extension; empty to create NAME-installer.
	ServiceAccount string

	// AllowLookup lets the templates of the chart look at the cluster, as spec.config.inline.allowLookup.
	AllowLookup bool

	// Bundle sets the way to read bundles, see [inspect.Request].
	Bundle inspect.Request
}

// State is the state of a move.
type State string

// States.
const (
	// Movable: it can be moved.
	Movable State = "Movable"
	// Refused: the problems have to be solved first.
	Refused State = "Refused"
	// Begun: a move was begun, and has not ended.
	Begun State = "Begun"
	// Moved: the extension is ready, and Helm still has its records.
	Moved State = "Moved"
)

// Checked is the result of a check of one release.
type Checked struct {
	Name  helmstore.Name
	State State

	// Problems are the reasons of a refusal. Notes are information for the user.
	Problems, Notes []string

	// Last is the last revision of Helm without the marker. Marker is nil before the move.
	Last   *helmstore.Revision
	Marker *helmstore.Revision

	// Extension is the ClusterExtension to create. Live is the existing one; nil if there is none.
	Extension, Live *ocv1.ClusterExtension

	// Plan is the plan of the controller for the extension.
	Plan inspect.Plan

	// Objects and Hooks are the recorded content of the last revision.
	Objects []*unstructured.Unstructured
	Hooks   []hook.Hook

	// MakesAccount is set if the ServiceAccount has to be created.
	MakesAccount bool
}

func (c *Checked) refuse(format string, values ...any) {
	c.State = Refused
	c.Problems = append(c.Problems, fmt.Sprintf(format, values...))
}

// Check checks whether a release can be moved. It writes nothing. It fails with
// [*helmstore.NotFoundError], or with an error of the API server.
func (c *Cluster) Check(ctx context.Context, name helmstore.Name, options Options) (*Checked, error) {
	checked, err := c.read(ctx, name)
	if err != nil || checked.State == Moved || checked.State == Refused {
		return checked, err
	}
	if err := checked.translate(options); err != nil {
		return nil, err
	}
	if checked.State == Refused {
		return checked, nil
	}
	if err := c.compare(ctx, checked, options); err != nil {
		return nil, err
	}
	return checked, ctx.Err()
}

// RefuseEqualNames refuses releases that could be moved and have equal names in several namespaces: extensions are
// not in namespaces, and have the names of their releases.
func RefuseEqualNames(checked []*Checked) {
	count := map[string]int{}
	for _, one := range checked {
		if one.State == Movable {
			count[one.Name.Name]++
		}
	}
	for _, one := range checked {
		if one.State == Movable && count[one.Name.Name] > 1 {
			one.refuse("%d releases have this name, and only one ClusterExtension can have it: choose one, and move it without --all", count[one.Name.Name])
		}
	}
}

// read reads the records of Helm and the extension of the same name.
func (c *Cluster) read(ctx context.Context, name helmstore.Name) (*Checked, error) {
	history, err := c.releases.History(ctx, name)
	if err != nil {
		return nil, err
	}
	checked := &Checked{Name: name, State: Movable}
	checked.Last = new(history[len(history)-1])
	switch marker := slices.IndexFunc(history, helmstore.Revision.IsMarker); {
	case marker < 0:
	case marker < len(history)-1:
		checked.refuse("Helm created revision %d after the release was moved: end that move with `kubectl extension migrate helm rollback %s -n %s`, and move the release again",
			checked.Last.Version, name.Name, name.Namespace)
		return checked, nil
	case marker == 0:
		checked.refuse("Helm has no revision besides the marker of the move: run `kubectl extension migrate helm rollback %s -n %s`", name.Name, name.Namespace)
		return checked, nil
	default:
		checked.Marker, checked.Last, checked.State = checked.Last, new(history[marker-1]), Begun
	}
	if checked.Live, err = c.extension(ctx, name.Name); err != nil {
		return nil, err
	}
	switch {
	case checked.Live == nil:
	case !isOf(checked.Live, name):
		origin := checked.Live.Annotations[ocv1.MigratedFromHelmReleaseAnnotation]
		if origin == "" {
			origin = "not from a release of Helm, or its move was finished"
		}
		checked.refuse("ClusterExtension %q exists, and was not created from this release (%s): an extension has the name of its release, so install the release again under another name",
			name.Name, excerpt.Line(origin, maxDiffering))
	case checked.Live.DeletionTimestamp != nil:
		checked.refuse("ClusterExtension %q is being deleted", name.Name)
	case checked.Marker != nil && isReady(checked.Live, meta.FindStatusCondition(checked.Live.Status.Conditions, ocv1.TypeReady)):
		checked.State = Moved
	}
	if checked.Last.Info.Status != helmrelease.StatusDeployed {
		checked.refuse("revision %d has the status %s, and only a deployed revision can be moved: complete it with `helm upgrade` or `helm rollback`", checked.Last.Version, checked.Last.Info.Status)
	}
	return checked, nil
}

// translate creates the extension, and decodes the manifest of the release.
func (c *Checked) translate(options Options) error {
	if problems := validation.IsDNS1123Label(c.Name.Name); len(problems) > 0 {
		c.refuse("an extension cannot have the name of the release: %s", problems[0])
		return nil
	}
	if c.Last.Chart == nil || c.Last.Chart.Metadata == nil {
		c.refuse("the record of Helm has no metadata of the chart")
		return nil
	}
	objects, err := helmstore.Objects(c.Last.Manifest)
	if err != nil {
		c.refuse("%v", err)
		return nil
	}
	c.Objects = objects
	for _, recorded := range c.Last.Hooks {
		if recorded == nil {
			c.refuse("the record of Helm has a hook without content")
			return nil
		}
		found, err := helmstore.Objects(recorded.Manifest)
		var some []hook.Hook
		if err == nil {
			some, err = hook.All(found)
		}
		if err != nil {
			c.refuse("hook %s: %v", excerpt.Quote(recorded.Name), err)
			return nil
		}
		c.Hooks = append(c.Hooks, some...)
	}
	if c.Extension, err = extensionOf(c.Name, c.Last, options); err != nil {
		return err
	}
	c.MakesAccount = options.ServiceAccount == ""
	return nil
}

// extensionOf returns an extension with the values that the user gave the release.
func extensionOf(name helmstore.Name, last *helmstore.Revision, options Options) (*ocv1.ClusterExtension, error) {
	ext := &ocv1.ClusterExtension{
		TypeMeta: metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterExtensionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name.Name, Annotations: map[string]string{ocv1.MigratedFromHelmReleaseAnnotation: name.String()},
		},
	}
	ext.Spec.Namespace = name.Namespace
	ext.Spec.ServiceAccount.Name = options.ServiceAccount
	if options.ServiceAccount == "" {
		ext.Spec.ServiceAccount.Name = name.Name + "-installer"
	}
	image := options.Image
	if options.Repository != "" {
		// As Helm tags what it pushes: no tag can have a plus.
		image = fmt.Sprintf("%s/%s:%s", strings.TrimSuffix(options.Repository, "/"), last.Chart.Metadata.Name, strings.ReplaceAll(last.Chart.Metadata.Version, "+", "_"))
	}
	if image = strings.TrimPrefix(image, "oci://"); image != "" { // as Helm writes references
		ext.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: image}}
	} else {
		ext.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: &ocv1.CatalogFilter{
			PackageName: last.Chart.Metadata.Name, Version: strings.TrimPrefix(last.Chart.Metadata.Version, "v"),
		}}
	}
	inline := map[string]any{}
	if len(last.Config) > 0 {
		inline["values"] = last.Config
	}
	if options.AllowLookup {
		inline["allowLookup"] = true
	}
	if len(inline) == 0 {
		return ext, nil
	}
	text, err := json.Marshal(inline)
	if err != nil {
		return nil, fmt.Errorf("encoding the values of release %q: %w", name, err)
	}
	ext.Spec.Config = &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: text}}
	return ext, nil
}

// compare renders the chart as the controller would, and compares the result with the objects of the
// release.
func (c *Cluster) compare(ctx context.Context, checked *Checked, options Options) error {
	request := options.Bundle
	request.Name, request.File = checked.Extension.Name, checked.Extension
	first, err := c.inspect.Plan(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		checked.refuse("%v", err)
		return nil
	}
	checked.Plan = first
	switch {
	case first.Err != nil:
		checked.refuse("cannot choose a bundle: %v: name the image of the chart with --image", first.Err)
	case first.Revision.Bundle.Name == "":
		checked.refuse("no ClusterCatalog has chart %s %s: push it with `kubectl extension bundle push`, and name it with --image", checked.Last.Chart.Metadata.Name, checked.Last.Chart.Metadata.Version)
	case !first.IsChart:
		checked.refuse("image %s is not a Helm chart", excerpt.Quote(first.Revision.Image))
	case !isSameChart(first, checked.Last):
		checked.refuse("image %s is chart %s version %s, and the release is of chart %s version %s", excerpt.Quote(first.Revision.Image),
			first.Revision.Bundle.Package, first.Revision.Bundle.Version, checked.Last.Chart.Metadata.Name, checked.Last.Chart.Metadata.Version)
	case first.LooksInVain:
		checked.refuse("templates of the chart call lookup, which is not allowed: allow it with --allow-lookup")
	}
	if checked.State == Refused {
		return nil
	}
	// Random values differ between two renderings. Some templates treat upgrades in another way than
	// installations.
	var upgradedHooks []hook.Hook
	request.Before = func(ctx context.Context, rendering bundlesource.Rendering) ([]*unstructured.Unstructured, error) {
		upgraded, err := request.Bundles.Render(ctx, imageOf(first), rendering)
		upgradedHooks = upgraded.Hooks
		return upgraded.Objects, err
	}
	second, err := c.inspect.Plan(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		checked.refuse("%v", err)
		return nil
	}
	differing := differing(checked.Name.Namespace, checked.Objects, first.Objects, second.Objects, second.Before)
	differing = append(differing, differingHooks(checked.Name.Namespace, checked.Hooks, first.Hooks, second.Hooks, upgradedHooks)...)
	if len(differing) > 0 {
		checked.refuse("the objects that Helm installed differ from what the chart renders with the values of the release: %s; a post-renderer, an upgrade of the cluster since, or `helm upgrade --reuse-values` can be the cause; "+
			"run `helm upgrade` with the same chart and the values of `helm get values --all`, without a post-renderer, and try again", excerpt.Of(differing, maxDiffering))
	}
	if err := c.checkAccount(ctx, checked); err != nil {
		return err
	}
	return c.checkObjects(ctx, checked)
}

// checkAccount refuses a release if the ServiceAccount to create exists, or the one to use does not.
func (c *Cluster) checkAccount(ctx context.Context, checked *Checked) error {
	if checked.Live != nil {
		return nil
	}
	name := checked.Extension.Spec.ServiceAccount.Name
	_, err := c.api.Resource(accounts).Namespace(checked.Name.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && checked.MakesAccount:
		checked.refuse("ServiceAccount %q exists already, for example from an earlier move: use it with `--service-account %s`, or delete it", name, name)
	case apierrors.IsNotFound(err) && !checked.MakesAccount:
		checked.refuse("ServiceAccount %q does not exist in namespace %q", name, checked.Name.Namespace)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading ServiceAccount %q in namespace %q: %w", name, checked.Name.Namespace, err)
	}
	return nil
}

// maxDiffering bounds the list of differing objects in a message, in bytes.
const maxDiffering = 600

func imageOf(plan inspect.Plan) string {
	image := plan.Revision.Image
	if plan.Digest != "" && !strings.Contains(image, "@") {
		image += "@" + plan.Digest
	}
	return image
}

func isSameChart(plan inspect.Plan, last *helmstore.Revision) bool {
	installed, err := semver.NewVersion(last.Chart.Metadata.Version)
	return err == nil && plan.Revision.Bundle.Package == last.Chart.Metadata.Name && plan.Revision.Bundle.Version == installed.String()
}

// maxReads bounds the objects that are read at the same time.
const maxReads = 16

// checkObjects reads the objects of a release. It refuses objects of other owners, and notes objects that the
// controller would restore.
func (c *Cluster) checkObjects(ctx context.Context, checked *Checked) error {
	owner := controller.OwnerOf(checked.Extension)
	items, err := object.Items(c.mapper, owner, checked.Objects)
	if err != nil {
		checked.refuse("%v", err)
		return nil
	}
	var mu sync.Mutex
	var missing, changed []string
	var group errgroup.Group
	group.SetLimit(maxReads)
	for _, item := range items {
		group.Go(func() error {
			found, err := c.checkObject(ctx, owner, item)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case found.isMissing:
				missing = append(missing, item.Key.String())
			case found.holder != "":
				checked.refuse("%s belongs to %s", item.Key, found.holder)
			case found.isChanged:
				changed = append(changed, item.Key.String())
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.Sort(checked.Problems)
	// A record alone must not create objects, and the ServiceAccount gets permissions for what exists.
	if slices.Sort(missing); len(missing) > 0 {
		checked.refuse("these objects of the release do not exist: %s; restore them with `helm upgrade`, and try again", excerpt.Of(missing, maxDiffering))
	}
	if slices.Sort(changed); len(changed) > 0 {
		checked.Notes = append(checked.Notes, "after the move, the controller restores these objects, which were changed since Helm wrote them: "+excerpt.Of(changed, maxDiffering))
	}
	if len(checked.Last.Config) > 0 {
		checked.Notes = append(checked.Notes, "the values of the release become a part of the ClusterExtension: all users who may read that can read them")
	}
	return nil
}

// foundObject is the state of an object of a release on the cluster.
type foundObject struct {
	isMissing, isChanged bool

	// holder is the other owner of the object; empty if there is none.
	holder string
}

func (c *Cluster) checkObject(ctx context.Context, owner object.Owner, item object.Item) (foundObject, error) {
	manifest := item.Object.DeepCopy()
	owner.Stamp(item.Object)
	live, err := c.api.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace).Get(ctx, item.Key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return foundObject{isMissing: true}, nil
	case err != nil:
		return foundObject{}, fmt.Errorf("reading %s: %w", item.Key, err)
	case !owner.HasAs(manifest, live) && !owner.OwnsAs(manifest, live):
		return foundObject{holder: object.HolderOf(live).String()}, nil
	}
	patch, err := object.ThreeWay{Wanted: item.Object, Live: live}.Patch()
	if err != nil {
		return foundObject{}, fmt.Errorf("comparing %s: %w", item.Key, err)
	}
	return foundObject{isChanged: !patch.IsEmpty()}, nil
}
