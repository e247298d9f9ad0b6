package gitops_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// strategies are the ways in which Argo CD can compare: what an Application has for each.
var strategies = []struct{ name, old, replacement string }{
	{"legacy", "selfHeal: true\n", "selfHeal: true\n"},
	{"structured merge", "selfHeal: true\n", "selfHeal: true\n    syncOptions:\n      - ServerSideApply=true\n"},
	{"server-side", "  namespace: argocd\n  #", "  namespace: argocd\n  annotations:\n    argocd.argoproj.io/compare-options: ServerSideDiff=true\n  #"},
}

// TestRest has Argo CD and Flux reconcile the same objects.
func TestRest(t *testing.T) {
	needEngines(t)
	files := newRepository(t)
	files.forFlux(t)
	files.push(t)
	startArgoCD(t, files)
	startFlux(t)
	applications := record(t, applicationKind, "sample-operator")
	widgets := record(t, kustomizationKind, "sample-widgets")
	kubectl(t, "apply", "-k", filepath.Join(files.dir, "flux"))
	kubectl(t, "apply", "-f", filepath.Join(files.dir, "argocd", "root.yaml"))
	tellWidgetReady(t)
	widgets.await(t, 0, "Ready", hasCondition("Ready", "True"))
	applications.await(t, 0, "Synced and Healthy", isSettled)

	for _, strategy := range strategies {
		t.Run("E6 at rest, "+strategy.name, func(t *testing.T) {
			edited := now(t)
			files.replace(t, applicationFile, strategy.old, strategy.replacement)
			settle(t, edited, applications)
			began := time.Now()
			time.Sleep(*idle)
			for _, write := range writesSince(t, began) {
				t.Errorf("%s by %s", write, write.User.Username)
			}
		})
	}
	t.Run("E6 what the controller repairs is no matter of Argo CD", func(t *testing.T) {
		began := time.Now()
		kubectl(t, "delete", "configmap", "sample-operator-config", "--namespace", "sample-operator")
		eventually(t, "the ConfigMap comes back", func(ctx context.Context) error {
			return theSuite.Kubectl(ctx, "get", "configmap", "sample-operator-config", "--namespace", "sample-operator")
		})
		for _, write := range writesSince(t, began) {
			if write.User.Username != environment.ControllerUser {
				t.Errorf("%s by %s", write, write.User.Username)
			}
		}
	})
	kubectl(t, "delete", "--filename", filepath.Join(files.dir, "argocd", "root.yaml"), "--wait=false")
	kubectl(t, "delete", "-k", filepath.Join(files.dir, "flux"), "--timeout", patience.String())
	kubectl(t, "wait", "--for=delete", "--namespace", "argocd", "application/extensions", "application/sample-operator", "--timeout", patience.String())
}

// settle waits until both engines have looked at what has been edited, and write no more.
func settle(t *testing.T, edited int64, applications *recorder) {
	t.Helper()
	const quiet = 12 * time.Second // longer than either lets pass between two looks
	eventually(t, "nobody writes", func(context.Context) error {
		if writes := writesSince(t, time.Now().Add(-quiet)); len(writes) > 0 {
			return fmt.Errorf("%d writes, the last is %s by %s", len(writes), writes[len(writes)-1], writes[len(writes)-1].User.Username)
		}
		return nil
	})
	if events := applications.since(edited); len(events) > 0 && !isSettled(events[len(events)-1]) {
		t.Errorf("the Application is %v", events[len(events)-1].object.Object["status"])
	}
}

// bookkeeping are resources that say how a controller is, and what it saw: leases of whoever
// leads, and what Flux keeps of its own objects each time that it looks.
var bookkeeping = []string{"leases", "kustomizations", "ocirepositories", "events"}

// writesSince are the writes of the controller, Argo CD and Flux, but for bookkeeping.
func writesSince(t *testing.T, began time.Time) []environment.Request {
	t.Helper()
	file, err := os.Open(theSuite.audit)
	must(t, err)
	defer func() { _ = file.Close() }() // was only read
	users := []string{argoCDUser, fluxUser, environment.ControllerUser}
	var writes []environment.Request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return writes // what is being written has no end of line yet
		}
		var request environment.Request
		must(t, errors.Join(json.Unmarshal(line, &request)))
		if request.StageTimestamp.Before(began) || !request.IsWrite() || !slices.Contains(users, request.User.Username) {
			continue
		}
		if request.ObjectRef == nil || !slices.Contains(bookkeeping, request.ObjectRef.Resource) {
			writes = append(writes, request)
		}
	}
}
