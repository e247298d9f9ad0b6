package applier_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const labelLastApplied = "olm.operatorframework.io/traces"

// editRecord changes the release of the newest record.
func (f *fixture) editRecord(t *testing.T, edit func(record map[string]any)) {
	t.Helper()
	records := f.records(t)
	newest := records[len(records)-1]
	reader, err := gzip.NewReader(bytes.NewReader(newest.Data["chunk"]))
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]any{}
	if err := json.NewDecoder(reader).Decode(&record); err != nil {
		t.Fatal(err)
	}
	edit(record)
	var data bytes.Buffer
	writer := gzip.NewWriter(&data)
	if err := json.NewEncoder(writer).Encode(record); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	newest.Data["chunk"] = data.Bytes()
	if err := admin.Update(t.Context(), &newest); err != nil {
		t.Fatal(err)
	}
}

func setLastApplied(record map[string]any, text string) {
	labels, _ := record["labels"].(map[string]any)
	labels[labelLastApplied] = text
}

// priorityClass has the name of the fixture: it is in no namespace.
func priorityClass(_ *testing.T, f *fixture) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": map[string]any{"name": f.owner.Name}, "value": int64(7), "description": "ours",
	}}
}

// whoWatches are the ways in which the watches of a process begin: as the ServiceAccount, or
// as the controller, with the extension or before it comes.
var whoWatches = map[string]func(t *testing.T, f *fixture){
	"account": func(t *testing.T, f *fixture) {
		t.Helper()
		f.restart(t)
	},
	"controller": func(t *testing.T, f *fixture) {
		t.Helper()
		f.shares = true
		f.restart(t)
	},
	"controller before": func(t *testing.T, f *fixture) {
		t.Helper()
		f.shares = true
		f.restart(t)
		other := newOwner(t, f.owner.Name+"-2", f.owner.Namespace)
		t.Cleanup(func() { f.applier.Forget(other.Name) })
		if _, err := f.applier.Apply(t.Context(), other, f.desired("1.0.0", configMap("other", "1"))); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), f.live(t, "other")); err != nil {
			t.Fatal(err)
		}
		for f.waitForChange(t) != other.Name { // and not what the extension was told before
		}
	},
}

// TestRepairAfterRestartFindsWhatHappenedMeanwhile changes objects while no
// process runs. Only these are read by the next one.
func TestRepairAfterRestartFindsWhatHappenedMeanwhile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object func(t *testing.T, f *fixture) *unstructured.Unstructured // beside two ConfigMaps
		harm   func(t *testing.T, f *fixture)
		want   map[string]int
		healed func(t *testing.T, f *fixture) bool
	}{
		"nothing": {
			harm:   func(*testing.T, *fixture) {},
			want:   map[string]int{},
			healed: func(*testing.T, *fixture) bool { return true },
		},
		"deleted": {
			harm: func(t *testing.T, f *fixture) {
				t.Helper()
				if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
					t.Fatal(err)
				}
			},
			want:   map[string]int{"GET content": 1, "GET owner": 1, "POST content": 1},
			healed: func(t *testing.T, f *fixture) bool { t.Helper(); return f.live(t, "a") != nil },
		},
		"changed": {
			harm:   change(func(live *corev1.ConfigMap) { live.Data["key"] = "x" }),
			want:   map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1},
			healed: func(t *testing.T, f *fixture) bool { t.Helper(); return f.live(t, "a").Data["key"] == "1" },
		},
		"owner labels changed": {
			harm: change(func(live *corev1.ConfigMap) { live.Labels["olm.operatorframework.io/owner-name"] = "another" }),
			want: map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1},
			healed: func(t *testing.T, f *fixture) bool {
				t.Helper()
				return f.live(t, "a").Labels["olm.operatorframework.io/owner-name"] == f.owner.Name
			},
		},
		"owner labels removed": {
			harm:   change(func(live *corev1.ConfigMap) { live.Labels = nil }),
			want:   map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1},
			healed: func(t *testing.T, f *fixture) bool { t.Helper(); return len(f.live(t, "a").Labels) == 3 },
		},
		"workload changed": {
			object: func(t *testing.T, _ *fixture) *unstructured.Unstructured { t.Helper(); return deployment(t) },
			harm: func(t *testing.T, f *fixture) {
				t.Helper()
				theirs := []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "registry.test/theirs"}]}}}}`)
				if err := admin.Patch(t.Context(), f.liveDeployment(t), client.RawPatch(types.StrategicMergePatchType, theirs)); err != nil {
					t.Fatal(err)
				}
				f.rollOut(t)
			},
			want: map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1},
			healed: func(t *testing.T, f *fixture) bool {
				t.Helper()
				return f.liveDeployment(t).Spec.Template.Spec.Containers[0].Image == "registry.test/c"
			},
		},
		"changed without a new generation": {
			object: priorityClass,
			harm: func(t *testing.T, f *fixture) {
				t.Helper()
				live := f.livePriorityClass(t)
				live.Description = "theirs"
				if err := admin.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
			},
			want:   map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1},
			healed: func(t *testing.T, f *fixture) bool { t.Helper(); return f.livePriorityClass(t).Description == "ours" },
		},
	}
	for name, tc := range tests {
		for who, restart := range whoWatches {
			t.Run(name+" "+who, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, "meanwhile-"+dashed(name+" "+who))
				objects := []*unstructured.Unstructured{configMap("a", "1"), configMap("b", "1")}
				if tc.object != nil {
					objects = append(objects, tc.object(t, f))
				}
				f.apply(t, "1.0.0", objects...)
				f.applier.Forget(f.owner.Name)
				tc.harm(t, f)
				restart(t, f)
				f.observe(t)
				f.requests.take()
				began := time.Now()
				f.repair(t)
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("the repair took %s", took)
				}
				if diff := cmp.Diff(tc.want, countsOf(f.requests.take())); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if !tc.healed(t, f) {
					t.Error("the object is not as it should be")
				}
			})
		}
	}
}

// dashed is a text as a name of an object has it.
func dashed(text string) string {
	return strings.ReplaceAll(text, " ", "-")
}

// rollOut waits for the rollout of the Deployment to come as far as it can: a status that
// is written between a read and a write takes another of both.
func (f *fixture) rollOut(t *testing.T) {
	t.Helper()
	f.eventually(t, "the end of the rollout", func() bool {
		before := f.liveDeployment(t).ResourceVersion
		time.Sleep(500 * time.Millisecond)
		return f.liveDeployment(t).ResourceVersion == before
	})
}

func (f *fixture) liveDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	live := &appsv1.Deployment{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "d"}, live); err != nil {
		t.Fatal(err)
	}
	return live
}

func (f *fixture) livePriorityClass(t *testing.T) *schedulingv1.PriorityClass {
	t.Helper()
	live := &schedulingv1.PriorityClass{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: f.owner.Name}, live); err != nil {
		t.Fatal(err)
	}
	return live
}

// TestRecordsThatTellTooLittle has records from which it cannot be told how
// objects were left: all are read, and nothing is written.
func TestRecordsThatTellTooLittle(t *testing.T) {
	t.Parallel()
	tests := map[string]func(record map[string]any){
		"of the reference implementation": func(record map[string]any) {
			labels, _ := record["labels"].(map[string]any)
			delete(labels, labelLastApplied)
		},
		"of another manifest": func(record map[string]any) {
			manifest, _ := record["manifest"].(string)
			record["manifest"] = manifest + "\n"
		},
		"damaged": func(record map[string]any) { setLastApplied(record, "{") },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "little-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.editRecord(t, edit)
			f.restart(t)
			f.observe(t)
			f.requests.take()
			f.repair(t)
			if diff := cmp.Diff(map[string]int{"GET content": 2}, countsOf(f.requests.take())); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchesThatDoNotAnswer has a connection on which watches are answered and
// never say anything.
func TestWatchesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for who, shares := range map[string]bool{"account": false, "controller": true} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "mute-"+dashed(who))
			f.apply(t, "1.0.0", configMap("a", "1"))
			if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
				t.Fatal(err)
			}
			f.shares = shares
			f.restartWith(t, func(config *rest.Config) { config.Wrap(muteWatches) })
			began := time.Now()
			f.repair(t)
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the repair took %s", took)
			}
			if f.live(t, "a") == nil {
				t.Error("the object is still missing")
			}
		})
	}
}

func muteWatches(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("watch") == "" {
			return next.RoundTrip(req)
		}
		body, silent := io.Pipe()
		go func() {
			<-req.Context().Done()
			_ = silent.Close()
		}()
		return &http.Response{
			StatusCode: http.StatusOK,
			Header:     http.Header{"Content-Type": []string{"application/json"}},
			Body:       body,
			Request:    req,
		}, nil
	})
}

// TestWorkloadsAfterARestart has the watch say how they are doing, at no other
// request and before anybody is told anything.
func TestWorkloadsAfterARestart(t *testing.T) {
	t.Parallel()
	for who, restart := range whoWatches {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "workloads-again-"+dashed(who))
			f.apply(t, "1.0.0", deployment(t), configMap("a", "1"))
			for !settledAs(f.workloads(t), metav1.ConditionFalse) {
				f.waitForChange(t)
			}
			restart(t, f)
			f.observe(t)
			if _, known := f.applier.Workloads(f.owner); known {
				t.Error("the workloads are known before they were looked at")
			}
			f.requests.take()
			f.repair(t)
			if diff := cmp.Diff(map[string]int{}, countsOf(f.requests.take())); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if workloads := f.workloads(t); !settledAs(workloads, metav1.ConditionFalse) {
				t.Errorf("after a restart the workloads are %+v", workloads)
			}
		})
	}
}

// TestWatchesThatRunAlready has another extension of the same ServiceAccount whose
// watches will not say again what is there. Those of the controller will.
func TestWatchesThatRunAlready(t *testing.T) {
	t.Parallel()
	for who, restart := range whoWatches {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "runs-1-"+dashed(who))
			restart(t, f)
			f.apply(t, "1.0.0", configMap("a", "1"))
			second := newOwner(t, "runs-2-"+dashed(who), f.owner.Namespace)
			t.Cleanup(func() { f.applier.Forget(second.Name) })
			if _, err := f.applier.Apply(t.Context(), second, f.desired("1.0.0", configMap("b", "1"))); err != nil {
				t.Fatal(err)
			}
			f.applier.Forget(f.owner.Name)
			if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			result := f.repair(t)
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("the repair took %s: it waited for watches that say nothing", took)
			}
			if len(result.Changes) != 1 || f.live(t, "a") == nil {
				t.Errorf("changes = %v, want the object back", result.Changes)
			}
		})
	}
}

// TestRestartOverManyExtensionsOfOneServiceAccount: only the object is read that was changed
// while no process ran, of the extension whose turn comes last.
func TestRestartOverManyExtensionsOfOneServiceAccount(t *testing.T) {
	t.Parallel()
	const many = 55 // more than a watch selects by name
	f := newFixture(t, "of-one-account")
	owners := []object.Owner{f.owner}
	for i := 1; i < many; i++ {
		owners = append(owners, newOwner(t, fmt.Sprintf("%s-%d", f.owner.Name, i), f.owner.Namespace))
	}
	for _, f.owner = range owners {
		f.apply(t, "1.0.0", configMap(f.owner.Name, "1"))
	}
	for _, owner := range owners {
		f.applier.Forget(owner.Name)
	}
	changed := f.live(t, f.owner.Name)
	changed.Data["key"] = "x"
	if err := admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	for _, owner := range owners {
		f.owner = owner
		t.Cleanup(func() { f.applier.Forget(owner.Name) })
		f.observe(t)
	}
	f.requests.take()
	for _, f.owner = range owners {
		f.repair(t)
	}
	want := map[string]int{"GET content": 1, "GET owner": 1, "PATCH content": 1}
	if diff := cmp.Diff(want, countsOf(f.requests.take())); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
