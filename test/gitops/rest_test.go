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
//
//nolint:paralleltest // examples have names of their own, and tests take turns with them
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
			time.Sleep(max(*idle, looks))
			requests := requestsSince(t, began)
			for _, write := range writesOf(requests) {
				t.Errorf("%s by %s", write, write.User.Username)
			}
			for _, user := range []string{argoCDUser, fluxUser} {
				if !slices.ContainsFunc(requests, func(request environment.Request) bool { return request.User.Username == user }) {
					t.Errorf("%s has not looked", user)
				}
			}
		})
	}
	t.Run("E6 what the controller repairs is no matter of Argo CD", func(t *testing.T) {
		began := time.Now()
		kubectl(t, "delete", "configmap", "sample-operator-config", "--namespace", "sample-operator")
		eventually(t, "the ConfigMap comes back", func(ctx context.Context) error {
			return theSuite.Kubectl(ctx, "get", "configmap", "sample-operator-config", "--namespace", "sample-operator")
		})
		time.Sleep(looks)
		for _, write := range writesOf(requestsSince(t, began)) {
			if write.User.Username != environment.ControllerUser {
				t.Errorf("%s by %s", write, write.User.Username)
			}
		}
	})
	kubectl(t, "delete", "--filename", filepath.Join(files.dir, "argocd", "root.yaml"), "--wait=false")
	kubectl(t, "delete", "-k", filepath.Join(files.dir, "flux"), "--timeout", patience.String())
	kubectl(t, "wait", "--for=delete", "--namespace", "argocd", "application/extensions", "application/sample-operator", "--timeout", patience.String())
}

// looks is longer than either engine lets pass between two looks.
const looks = 7 * time.Second

// settle waits until both engines have looked at what has been edited, and write no more.
func settle(t *testing.T, edited int64, applications *recorder) {
	t.Helper()
	began := time.Now()
	eventually(t, "nobody writes", func(context.Context) error {
		if writes := writesOf(requestsSince(t, began)); len(writes) > 0 {
			began = time.Now()
			return fmt.Errorf("%d writes, the last is %s by %s", len(writes), writes[len(writes)-1], writes[len(writes)-1].User.Username)
		}
		if time.Since(began) < looks {
			return errors.New("nobody has written yet")
		}
		return nil
	})
	if events := applications.since(edited); len(events) > 0 && !isSettled(events[len(events)-1]) {
		t.Errorf("the Application is %v", events[len(events)-1].object.Object["status"])
	}
}

// bookkeeping are resources that each user may write at rest: the lease of who leads, and
// what Flux keeps of its own objects each time that it looks.
var bookkeeping = map[string][]string{
	environment.ControllerUser: {"leases"},
	argoCDUser:                 nil,
	fluxUser:                   {"kustomizations", "ocirepositories", "events"},
}

// requestsSince are those of the controller, Argo CD and Flux.
func requestsSince(t *testing.T, began time.Time) []environment.Request {
	t.Helper()
	file, err := os.Open(theSuite.audit)
	must(t, err)
	defer func() { _ = file.Close() }() // was only read
	var requests []environment.Request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return requests // what is being written has no end of line yet
		}
		var request environment.Request
		must(t, json.Unmarshal(line, &request))
		if _, ok := bookkeeping[request.User.Username]; ok && request.StageTimestamp.After(began) {
			requests = append(requests, request)
		}
	}
}

// writesOf are the writes among requests, but for bookkeeping.
func writesOf(requests []environment.Request) []environment.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(request environment.Request) bool {
		return !request.IsWrite() || request.ObjectRef != nil && slices.Contains(bookkeeping[request.User.Username], request.ObjectRef.Resource)
	})
}
