package inspect

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

var hookOwner = object.Owner{Name: "x", UID: "1", Namespace: "ns"}

// account returns the manifest in the chart, and the live object as the extension has written it.
func account(annotations map[string]string) (manifest, live *unstructured.Unstructured) {
	manifest = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "loom"}}}
	live = hookOwner.OwnHook(manifest)
	live.SetNamespace("ns")
	live.SetAnnotations(annotations)
	return manifest, live
}

// TestHooksThatCannotRun (F26): a preview reports the objects that block a hook before the upgrade.
func TestHooksThatCannotRun(t *testing.T) {
	t.Parallel()
	manifest, content := account(nil)
	_, ofRun := account(map[string]string{hook.AnnotationRun: "earlier"})
	ofOthers := content.DeepCopy()
	ofOthers.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "d", UID: "2", Controller: new(true)}})
	const before = `the pre-upgrade hook ServiceAccount "loom" in namespace "ns" cannot run: `
	for name, tc := range map[string]struct {
		live     *unstructured.Unstructured
		now      []*unstructured.Unstructured
		event    hook.Event
		policy   hook.Policy
		progress *hook.Progress
		want     string
	}{
		"F26: content that becomes a hook":    {live: content, now: []*unstructured.Unstructured{content}, want: before + string(hook.IsContent)},
		"F26: content that was a hook before": {live: ofRun, now: []*unstructured.Unstructured{content}, want: before + string(hook.IsContent)},
		"F26: after the content, it is gone":  {live: content, now: []*unstructured.Unstructured{content}, event: hook.PostUpgrade},
		"F26: a hook of an earlier run":       {live: ofRun},
		"F26: no policy deletes it":           {live: ofRun, policy: hook.Succeeded, want: before + string(hook.IsOfEarlierRun)},
		"F26: the hook is running":            {live: ofRun, policy: hook.Succeeded, progress: &hook.Progress{Operation: hook.Upgrade}},
		"F26: an object of others": {
			live: ofOthers, want: before + (&object.ConflictError{Claimant: hookOwner, Conflicts: []object.Conflict{{Object: object.KeyOf(content), Holder: object.HolderOf(ofOthers)}}}).Error(),
		},
		"F26: nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored []runtime.Object
			if tc.live != nil {
				stored = append(stored, tc.live.DeepCopy())
			}
			one := hook.Hook{Object: manifest, Events: []hook.Event{hook.PreUpgrade}, Policies: []hook.Policy{hook.BeforeCreation}}
			if tc.event != "" {
				one.Events = []hook.Event{tc.event}
			}
			if tc.policy != "" {
				one.Policies = []hook.Policy{tc.policy}
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
			plan := Plan{mapper: mapper, contentNow: tc.now}
			plan.Owner, plan.Progress = hookOwner, tc.progress
			facts := preview.Facts{Owner: hookOwner, Installed: &preview.Bundle{}, Hooks: []hook.Hook{one}, Progress: tc.progress}
			addHookObstacles(t.Context(), dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), stored...), plan, &facts)
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if !slices.Equal(facts.Obstacles, want) || len(facts.Unknown) != 0 {
				t.Errorf("obstacles are %q, want %q; unknown is %q", facts.Obstacles, want, facts.Unknown)
			}
		})
	}
}

// TestHooksOfATree (F26) has what hooks have left, and not what is gone.
func TestHooksOfATree(t *testing.T) {
	t.Parallel()
	manifest, live := account(map[string]string{hook.AnnotationRun: "earlier"})
	gone := manifest.DeepCopy()
	gone.SetName("gone")
	content := manifest.DeepCopy()
	content.SetName("content")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "loom", OwnerReferences: live.GetOwnerReferences()},
	})
	look := searching{reader: reader, owner: hookOwner}
	found := look.hooks(t.Context(), mapper, release.RecordedContent{
		Objects: []*unstructured.Unstructured{content}, HooksLeft: []*unstructured.Unstructured{manifest, gone, content},
	})
	if len(found) != 1 || found[0].Key.Name != "loom" || !found[0].IsOfHook || len(look.unknown) != 0 {
		t.Errorf("found %+v, %q", found, look.unknown)
	}
}
