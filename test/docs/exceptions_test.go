package docs_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/test/operator"
)

// notRun are the commands that are not carried out, with the reason. A command is
// named by its page and how it begins.
var notRun = []struct{ page, command, reason string }{
	{"README.md", "make demo", "starts a cluster of its own; a test of CI runs it"},
	{"README.md", "make test", "would run this test"},
	{"README.md", "kubectl apply --server-side -f https://github.com/", "downloads a release; test/node applies the same file"},
	{"README.md", "kubectl krew install", "needs krew and a release; test/release reads the manifest"},
	{"README.md", "kubectl apply -f https://github.com/clusterextensions/operator-controller/releases/latest/download/admission.yaml", "would bind the pages that follow; docs/who-may-use-a-serviceaccount.md applies the same policies"},
	{"docs/install-the-controller.md", "make image", "takes minutes; make release-check runs it"},
	{"docs/install-the-controller.md", "make deploy", "pods are simulated, and would run no image"},
	{"docs/run-locally.md", `eval "$(make -s cluster-up)"`, "would take over, or start, the cluster of whoever runs the tests"},
	{"docs/testing.md", "go test", "would run tests within tests"},
	{"docs/who-may-use-a-serviceaccount.md", "kubectl kustomize config/overlays/impersonate-by-namespace", "would take a right from the controller of all pages; a test of test/e2e does"},
	{"docs/approve-upgrades.md", "kubectl extension approve sample-operator", "asks whoever is at the terminal; a test of cmd/kubectl-extension answers"},
	{"docs/console.md", "kubectl extension console", "shows itself in a browser; test/console opens it"},
	{"docs/operators-that-veto.md", "kubectl patch operatorconditions", "takes an operator that has one; a test of test/e2e overrules it"},
	{"docs/uninstall.md", "kubectl delete -k config/controller", "would take its rights from the controller of the rest of the page; a test of test/deployment does"},
	{"docs/uninstall.md", "helm uninstall", "takes helm; a test of test/deployment does what it does"},
	{"docs/install-the-controller.md", "helm install", "takes helm; a test of test/deployment does what it does"},
	{"docs/argo-cd.md", "kubectl apply -f examples/argocd/root.yaml", "takes Argo CD; test/gitops does what it does"},
	{"docs/flux.md", "flux push artifact", "takes Flux; test/gitops does what it does"},
	{"docs/flux.md", "kubectl apply -k examples/flux", "takes Flux; test/gitops applies it"},
	{"docs/shared-watches.md", "kubectl -n olmv1-system rollout restart", "pods are simulated, and would run no image"},
	{"docs/monitor-a-fleet.md", "kubectl apply -k config/prometheus", "takes the Prometheus operator; a test of test/deployment applies what does not"},
	{"docs/alerts/OperatorControllerAbsent.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
	{"docs/alerts/OperatorControllerCatalogProblems.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
	{"docs/alerts/OperatorControllerServerCertificateExpiry.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
	{"docs/alerts/OperatorControllerUpgradeHeld.md", "kubectl get operatorconditions", "takes the kind, which not every cluster has; a test of test/e2e reads some"},
	{"docs/alerts/OperatorControllerUpgradeHeld.md", "kubectl logs", "pods are simulated, and have no logs"},
	{"docs/alerts/OperatorControllerWebhookCertificateExpiry.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
	{"docs/alerts/OperatorControllerWithoutLeader.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
	{"docs/troubleshoot.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
}

// background are the commands that go on while the page does.
var background = []struct{ page, command string }{
	{"docs/check-a-catalog.md", "kubectl extension catalog serve"},
	{"docs/upgrade.md", "kubectl get clusterextension sample-operator -w"},
}

// rewritten is what is replaced in commands. PORT and OTHER_PORT are free, and
// REGISTRY is the host of the registry, which can only be pulled from by other names.
var rewritten = []struct{ page, old, new string }{
	{"README.md", "https://github.com/clusterextensions/operator-controller/releases/latest/download/operatorhubio.yaml", "config/samples/operatorhubio.yaml"},
	{"README.md", "argocd-operator", operator.Package},
	{"docs/check-a-catalog.md", "--name sample", "--name sample --address 127.0.0.1:$PORT"},
	{"docs/publish-a-bundle.md", "registry.example/", "$REGISTRY/"},
	{"docs/run-locally.md", "make -s controller-up", "REGISTRY=127.0.0.1:$PORT CATALOGS=127.0.0.1:$OTHER_PORT hack/local/run up"},
	{"docs/check-a-catalog.md", "http://127.0.0.1:8080/", "http://127.0.0.1:$PORT/"},
}

// before are scripts that the test runs before a command of a page, where the reader would have
// another cluster: they delete data, and must not be on the page.
var before = []struct{ page, command, script string }{
	// Pages before this one leave the namespace with its ServiceAccount.
	{"docs/run-locally.md", "kubectl extension install sample-operator", "kubectl delete namespace sample-operator --ignore-not-found"},
	{"docs/backup.md", "kubectl apply --server-side -f content.restore.json", loseEverything},
}

// loseEverything deletes all extensions with their installed objects, custom resources and release
// records, as if the cluster was lost.
const loseEverything = "kubectl delete clusterextensions,clustercatalogs --all && " +
	"kubectl wait --for=delete crd/widgets.sample.clusterextensions.dev --timeout=1m && " +
	"kubectl wait --for=delete secrets -n olmv1-system -l owner=operator-controller --timeout=1m"

// withoutController are the pages that start one themselves.
var withoutController = []string{"docs/run-locally.md"}

// applied are the pages that go on with what their manifests make.
var applied = []string{"docs/sample-manifest.md"}

// exceptions are the tables, and which lines of them pages have used.
type exceptions struct{ used map[string]bool }

func newExceptions() *exceptions { return &exceptions{used: map[string]bool{}} }

func (e *exceptions) use(table, page, entry string) { e.used[table+": "+page+": "+entry] = true }

func (e *exceptions) isNotRun(page, command string) bool {
	for _, entry := range notRun {
		if entry.page == page && strings.HasPrefix(command, entry.command) {
			e.use("notRun", page, entry.command)
			return true
		}
	}
	return false
}

func (e *exceptions) isBackground(page, command string) bool {
	for _, entry := range background {
		if entry.page == page && strings.HasPrefix(command, entry.command) {
			e.use("background", page, entry.command)
			return true
		}
	}
	return false
}

// scriptBefore returns what the test runs before a command; empty for nothing.
func (e *exceptions) scriptBefore(page, command string) string {
	for _, entry := range before {
		if entry.page == page && strings.HasPrefix(command, entry.command) {
			e.use("before", page, entry.command)
			return entry.script
		}
	}
	return ""
}

func (e *exceptions) rewrite(page, text string) string {
	for _, entry := range rewritten {
		if entry.page == page && strings.Contains(text, entry.old) {
			e.use("rewritten", page, entry.old)
			text = strings.ReplaceAll(text, entry.old, entry.new)
		}
	}
	return text
}

// unused are the entries that no page has used, sorted: what they meant is gone.
func (e *exceptions) unused() []string {
	all := newExceptions()
	for _, entry := range notRun {
		all.use("notRun", entry.page, entry.command)
	}
	for _, entry := range background {
		all.use("background", entry.page, entry.command)
	}
	for _, entry := range before {
		all.use("before", entry.page, entry.command)
	}
	for _, entry := range rewritten {
		all.use("rewritten", entry.page, entry.old)
	}
	maps.DeleteFunc(all.used, func(entry string, _ bool) bool { return e.used[entry] })
	return slices.Sorted(maps.Keys(all.used))
}

func TestUnusedExceptionsAreFound(t *testing.T) {
	t.Parallel()

	exceptions := newExceptions()
	all := exceptions.unused()
	if want := len(notRun) + len(background) + len(before) + len(rewritten); len(all) != want {
		t.Errorf("%d are unused before anything is used, want all %d", len(all), want)
	}
	if exceptions.scriptBefore("docs/uninstall.md", before[0].command) != "" {
		t.Error("a script of another page is run")
	}
	if exceptions.isNotRun("README.md", "make bread") || !exceptions.isNotRun("README.md", "make demo    # words\n") {
		t.Error("a command is not told by how it begins")
	}
	if after := exceptions.unused(); len(after) != len(all)-1 || slices.Contains(after, "notRun: README.md: make demo") {
		t.Errorf("unused after one was used: %q", after)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()

	failure := exec.Command("false").Run()
	for name, tc := range map[string]struct {
		text, shown, printed string
		err                  error
		want                 bool
	}{
		"as shown":               {"a", "b\n", "b\n", nil, true},
		"not as shown":           {"a", "b\n", "c\n", nil, false},
		"nothing is shown":       {"a", "", "c\n", nil, true},
		"fails":                  {"a", "", "c\n", failure, false},
		"fails as shown":         {"a", "Error: c\n", "Error: c\n", failure, true},
		"does not fail as shown": {"a", "Error: c\n", "Error: c\n", nil, false},
		"there is a difference":  {"diff a b", "", "c\n", failure, true},
		"cannot be run":          {"a", "", "", os.ErrNotExist, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if problem := judge(tc.text, tc.shown, tc.printed, tc.err); (problem == "") != tc.want {
				t.Errorf("the problem is %q", problem)
			}
		})
	}
}

// isWhole tells whether all pages are carried out.
func isWhole() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
}
