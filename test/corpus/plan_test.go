package corpus_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// withPlans is off by default: each plan takes a process that reads the whole catalog.
var withPlans = flag.Bool("plans", false, "plan each upgrade, and hold the plan against the audit log")

// forecast is what a plan says of an upgrade: the writes that it takes.
type forecast struct {
	revision revision
	requests []string
	from, to time.Time

	// took and memory are what the plan has cost.
	took   time.Duration
	memory int64
}

// foresee plans the upgrade to a bundle. A right may be missing, which is in the way and no
// matter.
func (p *operatorPackage) foresee(t *testing.T, next revision) *forecast {
	t.Helper()
	extension := environment.Extension(next.pkg, next.pkg, installer, next.pinned)
	extension.APIVersion, extension.Kind = ocv1.GroupVersion.String(), "ClusterExtension"
	text, err := yaml.Marshal(extension)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "extension.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	output, memory, err := p.LocalUsage(t.Context(), "plan", "-f", file, "-o", "json", "--kubeconfig", p.Cluster.Kubeconfig())
	took := time.Since(begin)
	if exit, isExit := errors.AsType[*exec.ExitError](err); err != nil && (!isExit || exit.ExitCode() != 1 || output == "") {
		t.Fatalf("%v", err)
	}
	var made preview.Preview
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		t.Fatal(err)
	}
	requests, err := environment.Planned(p.Admin.RESTMapper(), made)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: planned in %s with %d MiB", next, took.Round(time.Millisecond), memory>>20)
	return &forecast{revision: next, requests: requests, took: took, memory: memory}
}

// cameTrue is for an upgrade that has come to its end.
func (s *suite) cameTrue(plan forecast, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan.from, plan.to = since, time.Now()
	s.forecasts = append(s.forecasts, plan)
}

// checkForecasts holds what was planned against what was written.
func (s *suite) checkForecasts(t *testing.T) {
	t.Helper()
	if !*withPlans {
		return
	}
	requests, err := environment.ControllerRequests(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]environment.Request{}
	for _, request := range requests {
		// What is refused because others have changed the object meanwhile is sent again.
		isRefused := request.ResponseStatus.Code == http.StatusConflict
		if pkg, isWrite := writeFor(request); isWrite && !isRefused && request.ImpersonatedUser != nil {
			written[pkg] = append(written[pkg], request)
		}
	}
	slowest, largest := s.forecasts[0], s.forecasts[0]
	for _, plan := range s.forecasts {
		var got []string
		for _, request := range written[plan.revision.pkg] {
			if request.StageTimestamp.After(plan.from) && request.StageTimestamp.Before(plan.to) {
				got = append(got, request.Written())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(plan.requests, got); diff != "" {
			t.Errorf("%s: requests (-planned +sent)\n%s", plan.revision, diff)
		}
		if plan.took > slowest.took {
			slowest = plan
		}
		if plan.memory > largest.memory {
			largest = plan
		}
	}
	t.Logf("%d upgrades were planned; the slowest plan took %s (%s), the largest %d MiB (%s)", len(s.forecasts),
		slowest.took.Round(time.Millisecond), slowest.revision, largest.memory>>20, largest.revision)
}
