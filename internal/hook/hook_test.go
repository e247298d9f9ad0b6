package hook

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason      string
		annotations map[string]string
		want        Hook
		wantErr     string
	}{
		"one event": {
			annotations: map[string]string{"helm.sh/hook": "pre-install"},
			want:        Hook{Events: []Event{PreInstall}, Policies: []Policy{BeforeCreation}},
		},
		"as Helm reads them": {
			reason:      "capitals, spaces and doubles mean nothing, and the order is ours",
			annotations: map[string]string{"helm.sh/hook": " Pre-Upgrade,pre-install, ,pre-install ", "helm.sh/hook-weight": "-5", "helm.sh/hook-delete-policy": "hook-succeeded, Hook-Failed"},
			want:        Hook{Events: []Event{PreInstall, PreUpgrade}, Policies: []Policy{Failed, Succeeded}, Weight: -5},
		},
		"a test by its earlier name": {
			annotations: map[string]string{"helm.sh/hook": "test-success"},
			want:        Hook{Events: []Event{Test}, Policies: []Policy{BeforeCreation}},
		},
		"what a rollback would run": {
			reason:      "nobody rolls back",
			annotations: map[string]string{"helm.sh/hook": "post-rollback,test,pre-rollback"},
			want:        Hook{Events: []Event{Test}, Policies: []Policy{BeforeCreation}},
		},
		"nothing but a rollback": {
			reason:      "it is known, and never runs",
			annotations: map[string]string{"helm.sh/hook": "pre-rollback"},
			want:        Hook{Policies: []Policy{BeforeCreation}},
		},
		"a weight with a sign":  {annotations: map[string]string{"helm.sh/hook": "test", "helm.sh/hook-weight": "+3"}, want: Hook{Events: []Event{Test}, Policies: []Policy{BeforeCreation}, Weight: 3}},
		"an event of no Helm":   {annotations: map[string]string{"helm.sh/hook": "pre-install,crd-install"}, wantErr: `helm.sh/hook is "crd-install", which is no event of Helm: there are pre-install, `},
		"no event":              {annotations: map[string]string{"helm.sh/hook": " , "}, wantErr: "helm.sh/hook names no event"},
		"a policy of no Helm":   {annotations: map[string]string{"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "never"}, wantErr: `helm.sh/hook-delete-policy is "never": there are before-hook-creation, hook-succeeded, hook-failed`},
		"a weight that is none": {annotations: map[string]string{"helm.sh/hook": "test", "helm.sh/hook-weight": "1.5"}, wantErr: `helm.sh/hook-weight is "1.5", which is no whole number`},
		"texts without end": {
			reason:      "what a stranger has written is quoted in part",
			annotations: map[string]string{"helm.sh/hook": strings.Repeat("x", 1<<20)}, wantErr: "which is no event of Helm",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetAnnotations(tc.annotations)
			got, err := Of(object)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(err.Error()) > 400 {
					t.Errorf("the error is %v, want %q: %s", err, tc.wantErr, tc.reason)
				}
				return
			}
			tc.want.Object = object
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a hook":                    {map[string]string{"helm.sh/hook": "test"}, true},
		"one of nothing":            {map[string]string{"helm.sh/hook": ""}, true},
		"nothing but what is about": {map[string]string{"helm.sh/hook-weight": "1"}, false},
		"none":                      {nil, false},
	} {
		if got := Is(tc.annotations); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWithoutTests(t *testing.T) {
	t.Parallel()
	all := []Hook{{Events: []Event{Test}}, {Events: []Event{PreInstall, Test}, Weight: 1}, {}, {Events: []Event{PostDelete}, Weight: 2}}
	kept := WithoutTests(all)
	if len(kept) != 2 || kept[0].Weight != 1 || kept[1].Weight != 2 || len(all) != 4 || !all[0].IsTest() {
		t.Errorf("%+v are kept of %+v", kept, all)
	}
}

func TestIsForDeletion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		events []Event
		want   bool
	}{
		{[]Event{PreDelete}, true},
		{[]Event{PostDelete, Test}, true},
		{[]Event{PostDelete, PreDelete}, true},
		{[]Event{PostDelete, PreInstall}, false},
		{[]Event{PostUpgrade}, false},
		{[]Event{Test}, false},
		{nil, false},
	} {
		if got := (Hook{Events: tc.events}).IsForDeletion(); got != tc.want {
			t.Errorf("%v: got %t, want %t", tc.events, got, tc.want)
		}
	}
}

// recordingKube takes down what Helm builds before it deletes it, creates it, or both.
type recordingKube struct {
	kubefake.PrintingKubeClient

	built []string
}

func (k *recordingKube) Build(manifest io.Reader, _ bool) (kube.ResourceList, error) {
	text, err := io.ReadAll(manifest)
	object := &unstructured.Unstructured{}
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		err = yaml.Unmarshal(text, object)
		if Is(object.GetAnnotations()) {
			k.built = append(k.built, object.GetKind()+"/"+object.GetName())
		}
	}
	return nil, err
}

// TestOrderIsThatOfHelm has Helm install a chart, and compares. Its hooks come in files of two
// orders: that of the files is the last thing that matters to Helm, and here nothing does.
func TestOrderIsThatOfHelm(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"Job": "batch/v1", "Pod": "v1", "ServiceAccount": "v1", "Role": "rbac.authorization.k8s.io/v1",
		"RoleBinding": "rbac.authorization.k8s.io/v1", "Secret": "v1", "Apple": "fruit.test/v1", "Pear": "fruit.test/v1",
	}
	var texts []string
	for _, weight := range []string{"", "-1", "10", "9"} {
		for _, name := range []string{"b", "a", "a-1", "A"} {
			for _, kind := range []string{"Pear", "Job", "RoleBinding", "Apple", "Role", "ServiceAccount", "Pod", "Secret"} {
				annotations := "helm.sh/hook: pre-install"
				if weight != "" {
					annotations += fmt.Sprintf(", helm.sh/hook-weight: %q", weight)
				}
				texts = append(texts, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {%s}}\n", kinds[kind], kind, name, annotations))
			}
		}
	}
	for _, order := range []string{"as they are", "the other way round"} {
		if order != "as they are" {
			slices.Reverse(texts)
		}
		packed := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "c", Version: "1.0.0"}}
		var hooks []Hook
		for i, text := range texts {
			packed.Templates = append(packed.Templates, &chart.File{Name: fmt.Sprintf("templates/%03d.yaml", i), Data: []byte(text)})
			one, err := Of(objectOf(t, text))
			if err != nil {
				t.Fatal(err)
			}
			hooks = append(hooks, one)
		}
		client := &recordingKube{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}}
		install := action.NewInstall(&action.Configuration{
			Releases: storage.Init(driver.NewMemory()), KubeClient: client, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		})
		install.ReleaseName, install.Namespace = "c", "ns"
		if _, err := install.Run(packed, nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range At(PreInstall, hooks) {
			got = append(got, one.Object.GetKind()+"/"+one.Object.GetName())
		}
		if diff := cmp.Diff(slices.Compact(client.built), got); diff != "" || len(got) != len(texts) {
			t.Errorf("files %s: %d hooks (-Helm +got):\n%s", order, len(got), diff)
		}
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	named := func(name, namespace string, weight int, events ...Event) Hook {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "Job"}}
		object.SetName(name)
		object.SetNamespace(namespace)
		return Hook{Object: object, Events: events, Weight: weight}
	}
	hooks := []Hook{
		named("late", "", 10, PreInstall, PreUpgrade), named("b", "", 0, PreInstall), named("a", "y", 0, PreInstall),
		named("a", "x", 0, PreInstall), named("early", "", -1, PreInstall), named("after", "", -5, PostInstall),
	}
	for event, want := range map[Event][]string{
		PreInstall: {"early", "x/a", "y/a", "b", "late"}, PreUpgrade: {"late"}, PostInstall: {"after"}, PostDelete: nil,
	} {
		for range 2 {
			var got []string
			for _, one := range At(event, hooks) {
				got = append(got, strings.TrimPrefix(one.Object.GetNamespace()+"/"+one.Object.GetName(), "/"))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", event, diff)
			}
			slices.Reverse(hooks)
		}
	}
}
