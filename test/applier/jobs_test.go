package applier_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migrate is a Job that never begins: nothing of the test depends on when it finishes.
func migrate(t *testing.T, more string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {suspend: true, `+more+`
		template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.test/migrate}]}}}}`)
}

// job is nil if there is none.
func (f *fixture) job(t *testing.T) *batchv1.Job {
	t.Helper()
	found := &batchv1.Job{}
	err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "migrate"}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// expires deletes the Job, as the cluster does when its time is over.
func (f *fixture) expires(t *testing.T) {
	t.Helper()
	if err := admin.Delete(t.Context(), f.job(t), client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job to be gone", func() bool { return f.job(t) == nil })
}

// jobsCreated are the requests since the last call that create a Job.
func (f *fixture) jobsCreated() []string {
	return slices.DeleteFunc(f.requests.take(), func(line string) bool {
		return !strings.Contains(line, " POST ") || !strings.HasSuffix(line, "/jobs")
	})
}

// TestJobsThatExpire (F18): a Job that the cluster deletes after it has finished is done for its revision.
func TestJobsThatExpire(t *testing.T) {
	t.Parallel()
	const ttl = "ttlSecondsAfterFinished: 5,"
	labelled := func(job *unstructured.Unstructured) *unstructured.Unstructured {
		job.SetLabels(map[string]string{"version": "2"})
		return job
	}
	tests := map[string]struct {
		extension string

		job     *unstructured.Unstructured
		before  func(t *testing.T, f *fixture, job *unstructured.Unstructured)
		next    *unstructured.Unstructured
		created int // by the repair after the Job is gone
		again   int // by the next version
	}{
		"F18: it is not created again":      {extension: "expires", job: migrate(t, ttl), next: migrate(t, ttl)},
		"F18: nor for a label":              {extension: "expires-label", job: migrate(t, ttl), next: labelled(migrate(t, ttl))},
		"F18: another spec is to run":       {extension: "expires-spec", job: migrate(t, ttl), next: migrate(t, ttl+"backoffLimit: 1,"), again: 1},
		"F18: without that, it is restored": {extension: "expires-never", job: migrate(t, ""), next: migrate(t, ""), created: 1},
		"F18: it begins to expire later":    {extension: "expires-later", job: migrate(t, ""), next: migrate(t, ttl), created: 1},
		"F18: it expires for a webhook": {
			extension: "expires-webhook", job: migrate(t, ""), next: labelled(migrate(t, "")),
			before: func(t *testing.T, f *fixture, job *unstructured.Unstructured) {
				t.Helper()
				f.edit(t, "batch/v1", "Job", job.GetName(), func(content map[string]any) {
					_ = unstructured.SetNestedField(content, int64(5), "spec", "ttlSecondsAfterFinished")
				})
				other := job.DeepCopy()
				other.SetAnnotations(map[string]string{"note": "n"})
				f.apply(t, "1.0.1", configMap("a", "1"), other)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tc.extension)
			f.apply(t, "1.0.0", configMap("a", "1"), tc.job)
			if tc.before != nil {
				tc.before(t, f, tc.job)
			}
			f.settle(t)
			f.expires(t)
			f.waitForChange(t)
			for _, process := range []string{"the same", "another"} {
				f.requests.take()
				if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
					t.Fatal(err)
				}
				if created := f.jobsCreated(); len(created) != tc.created {
					t.Errorf("%s process: %q", process, created)
				}
				if tc.created > 0 {
					break
				}
				if workloads := f.workloads(t); len(workloads) != 0 {
					t.Errorf("%s process: it counts as %+v", process, workloads)
				}
				f.settle(t)
				if _, err := f.applier.Repair(t.Context(), f.owner); err != nil || len(f.requests.take()) != 0 {
					t.Errorf("%s process: requests are made at rest, %v", process, err)
				}
				f.restart(t)
			}
			for _, version := range []string{"2.0.0", "2.0.1"} { // the second one changes nothing
				f.requests.take()
				f.apply(t, version, configMap("a", version), tc.next)
				if created := f.jobsCreated(); len(created) != tc.again {
					t.Errorf("%s: %q", version, created)
				}
				if tc.again > 0 {
					f.settle(t)
					f.expires(t)
					f.waitForChange(t)
					tc.again = 0
				}
			}
		})
	}
}

// TestJobsOfARevisionThatFails (F18): the next try does not run a Job again that has run.
func TestJobsOfARevisionThatFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "jobfails")
	job := migrate(t, "ttlSecondsAfterFinished: 5,")
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && strings.HasSuffix(req.URL.Path, "/deployments") {
			return errors.New("boom")
		}
		return nil
	})
	for range 3 {
		f.requests.take()
		if _, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", job, deployment(t))); err == nil {
			t.Fatal("it does not fail")
		}
		created := f.jobsCreated()
		live := f.job(t)
		if (live == nil) != (len(created) == 0) {
			t.Fatalf("created %q, is %v", created, live)
		}
		if live != nil {
			f.expires(t)
		}
	}
	f.requests.setStop(nil)
	f.requests.take()
	f.apply(t, "1.0.0", job, deployment(t))
	if created := f.jobsCreated(); len(created) != 0 {
		t.Errorf("the Job is created again: %q", created)
	}
}
