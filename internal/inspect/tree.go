package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

const (
	// maxKinds is how many kinds are searched for objects of an extension.
	maxKinds = 2_000

	// maxKindsText is how much is said of those that may not be, in bytes.
	maxKindsText = 600
)

// searching is a look at the objects of an extension, as whoever asks.
type searching struct {
	api    dynamic.Interface
	reader metadata.Interface
	owner  object.Owner

	// unknown is what could not be found out, a line each.
	unknown []string
}

// Tree gives an extension with its objects: those that the release records have or, for those
// who may not read these, those that are marked as its own and may be listed. The error says that
// there is no such extension, or no way to the cluster.
func (c *Cluster) Tree(ctx context.Context, name string) (overview.Tree, error) {
	asked, err := c.extension(ctx, Request{Name: name})
	if err != nil {
		return overview.Tree{}, err
	}
	ext := asked.wanted
	look := searching{owner: controller.OwnerOf(ext)}
	// What is deprecated is searched, too, and nobody who asks for a tree can help it.
	quiet := rest.CopyConfig(c.cfg.REST)
	quiet.WarningHandler = rest.NoWarnings{}
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err == nil {
		look.api, err = dynamic.NewForConfigAndClient(quiet, c.through)
	}
	if err == nil {
		look.reader, err = metadata.NewForConfigAndClient(quiet, c.through)
	}
	if err != nil {
		return overview.Tree{}, fmt.Errorf("setting up a client: %w", err)
	}
	var found []overview.Found
	recorded, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, look.owner)
	if err == nil {
		err = c.checkRecorded(ext, recorded.Revisions)
	}
	if err == nil {
		found = look.recorded(ctx, mapper, recorded)
		found = append(found, look.hooks(ctx, mapper, recorded)...)
	} else {
		look.unknown = append(look.unknown, fmt.Sprintf("which objects are missing, which the release records say: %v", err))
		found = look.marked(ctx, c)
	}
	return overview.MakeTree(overview.RowOf(ext), found, look.unknown, c.cfg.Now()), ctx.Err()
}

// recorded looks at the objects of the release records.
func (s *searching) recorded(ctx context.Context, mapper meta.RESTMapper, recorded release.RecordedContent) []overview.Found {
	known, err := object.Known(mapper, s.owner, recorded.Objects)
	if err != nil {
		s.unknown = append(s.unknown, fmt.Sprintf("which of the recorded objects there are: %v", err))
		return nil
	}
	if unserved := countOf(recorded.Objects) - len(known); unserved > 0 {
		s.unknown = append(s.unknown, fmt.Sprintf("what became of recorded objects whose kinds the cluster does not serve: %d", unserved))
	}
	items := slices.Collect(maps.Values(known))
	found := make([]overview.Found, len(items))
	var group errgroup.Group
	group.SetLimit(maxReads)
	for i, item := range items {
		group.Go(func() error {
			found[i] = s.look(ctx, item.Key, item.Mapping.Resource, item.Object)
			found[i].Ran = recorded.Ran.Has(item.Key, item.Object)
			return nil
		})
	}
	_ = group.Wait() // what cannot be read is said to be unknown
	return found
}

// hooks reads the objects of hooks. Most of them are deleted when the hook has ended, so they are not missing if they do
// not exist.
func (s *searching) hooks(ctx context.Context, mapper meta.RESTMapper, recorded release.RecordedContent) []overview.Found {
	content, err := object.Known(mapper, s.owner, recorded.Objects)
	if err != nil {
		return nil // the list of objects reports it
	}
	left, err := object.Known(mapper, s.owner, recorded.HooksLeft)
	if err != nil {
		s.unknown = append(s.unknown, fmt.Sprintf("what hooks have left: %v", err))
		return nil
	}
	var found []overview.Found
	for key, item := range left {
		if _, isContent := content[key]; isContent {
			continue
		}
		one := s.look(ctx, key, item.Mapping.Resource, item.Object)
		if one.IsOfHook = true; one.Err != nil || one.Live != nil && !one.Foreign {
			found = append(found, one)
		}
	}
	return found
}

// countOf counts each object once, of however many revisions it is.
func countOf(recorded []*unstructured.Unstructured) int {
	keys := map[object.Key]struct{}{}
	for _, one := range recorded {
		keys[object.KeyOf(one)] = struct{}{}
	}
	return len(keys)
}

// look reads what there is to see of an object: all of what has a status that tells, and of any other only its
// metadata, as values of Secrets are nobody's business here.
func (s *searching) look(ctx context.Context, key object.Key, resource schema.GroupVersionResource, manifest metav1.Object) overview.Found {
	found := overview.Found{Key: key}
	if overview.ReadsStatus(key.GroupKind) {
		found.Live, found.Err = s.api.Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if found.Err == nil && !overview.ReadsSpec(key.GroupKind) {
			unstructured.RemoveNestedField(found.Live.Object, "spec") // there can be many, and large ones
		}
	} else {
		var live *metav1.PartialObjectMetadata
		if live, found.Err = s.reader.Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); found.Err == nil {
			found.Live = withMetadata(live)
		}
	}
	switch {
	case apierrors.IsNotFound(found.Err):
		found.Live, found.Err = nil, nil
	case found.Err != nil:
		found.Live = nil
	default:
		found.Foreign = !s.owner.HasAs(manifest, found.Live)
	}
	return found
}

// withMetadata has what tells whose an object is, and whether it is on its way out.
func withMetadata(live *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	found := &unstructured.Unstructured{Object: map[string]any{}}
	found.SetLabels(live.Labels)
	found.SetAnnotations(live.Annotations)
	found.SetOwnerReferences(live.OwnerReferences)
	found.SetDeletionTimestamp(live.DeletionTimestamp)
	found.SetFinalizers(live.Finalizers)
	return found
}

// marked finds objects by their label and their owner, of all kinds that may be listed.
func (s *searching) marked(ctx context.Context, c *Cluster) []overview.Found {
	served, err := discovery.NewDiscoveryClientForConfigAndClient(c.cfg.REST, c.through)
	var lists []*metav1.APIResourceList
	if err == nil {
		lists, err = served.ServerPreferredResources()
	}
	if err != nil {
		s.unknown = append(s.unknown, fmt.Sprintf("which kinds there are: %v", err))
	}
	kinds := listedKinds(lists)
	if len(kinds) > maxKinds {
		s.unknown = append(s.unknown, fmt.Sprintf("whether there are objects of %d further kinds", len(kinds)-maxKinds))
		kinds = kinds[:maxKinds]
	}
	results := make([]search, len(kinds))
	var group errgroup.Group
	group.SetLimit(maxReads)
	for i, kind := range kinds {
		group.Go(func() error {
			results[i] = s.search(ctx, kind)
			return nil
		})
	}
	_ = group.Wait() // what cannot be listed is said to be unknown
	var found []overview.Found
	var refused, elsewhere []string
	for i, result := range results {
		found = append(found, result.found...)
		switch {
		case result.err != nil:
			refused = append(refused, kinds[i].resource.GroupResource().String())
		case result.elsewhere:
			elsewhere = append(elsewhere, kinds[i].resource.GroupResource().String())
		}
		if result.more {
			s.unknown = append(s.unknown, fmt.Sprintf("whether there are more than %d of %s", usage.MaxListed, kinds[i].resource.GroupResource()))
		}
	}
	slices.Sort(refused)
	slices.Sort(elsewhere)
	if len(refused) > 0 {
		s.unknown = append(s.unknown, "which objects there are of kinds that you may not list: "+excerpt.Of(refused, maxKindsText))
	}
	if len(elsewhere) > 0 {
		s.unknown = append(s.unknown, fmt.Sprintf("which there are outside of namespace %q of kinds that you may not list there: %s", s.owner.Namespace, excerpt.Of(elsewhere, maxKindsText)))
	}
	return found
}

// listedKind is a kind that can be listed.
type listedKind struct {
	resource   schema.GroupVersionResource
	kind       schema.GroupKind
	namespaced bool
}

func listedKinds(lists []*metav1.APIResourceList) []listedKind {
	var kinds []listedKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			one := &list.APIResources[i]
			if slices.Contains(one.Verbs, "list") && !strings.Contains(one.Name, "/") {
				kinds = append(kinds, listedKind{
					resource: version.WithResource(one.Name), kind: schema.GroupKind{Group: version.Group, Kind: one.Kind}, namespaced: one.Namespaced,
				})
			}
		}
	}
	return kinds
}

// search is what was found of one kind.
type search struct {
	found []overview.Found
	err   error

	// more says that there may be others of the kind, elsewhere that only the namespace of the
	// extension was searched.
	more, elsewhere bool
}

func (s *searching) search(ctx context.Context, kind listedKind) search {
	selector := labels.Set{object.LabelOwnerKind: object.OwnerKind, object.LabelOwnerName: s.owner.Name}
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: usage.MaxListed}
	var result search
	page, err := s.reader.Resource(kind.resource).List(ctx, options)
	if apierrors.IsForbidden(err) && kind.namespaced {
		result.elsewhere = true
		page, err = s.reader.Resource(kind.resource).Namespace(s.owner.Namespace).List(ctx, options)
	}
	if err != nil {
		return search{err: err}
	}
	result.more = page.Continue != ""
	for i := range page.Items {
		live := &page.Items[i]
		if !s.owner.Has(live) {
			continue
		}
		key := object.Key{GroupKind: kind.kind, Namespace: live.Namespace, Name: live.Name}
		if overview.ReadsStatus(kind.kind) {
			result.found = append(result.found, s.look(ctx, key, kind.resource, live))
			continue
		}
		result.found = append(result.found, overview.Found{Key: key, Live: withMetadata(live)})
	}
	return result
}
