package migration_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/migration"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	testclassic "github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// installed are the packages that classic OLM has installed on the cluster, with their versions.
var installed = map[string]string{
	"ecr-secret-operator": "0.6.0", "grafana-operator": "5.6.3", "mongodb-atlas-kubernetes": "1.4.0", "webhook-operator": "0.0.5",
	"kepler-operator": "0.23.0", "rabbitmq-messaging-topology-operator": "1.19.3", "rabbitmq-cluster-operator": "2.22.1",
}

const catalogImage = "registry.test/community-catalog:v1"

// start restores the cluster, with the images of all its packages in a registry, and starts the
// controller beside it.
func start(t *testing.T) *environment.Environment {
	t.Helper()
	corpus, file := testkit.Corpus(t), testclassic.Snapshot(t)
	env, err := environment.Start(t.Context(), environment.Options{Snapshot: file, Registries: []string{"registry.test"}, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, version := range installed {
		files := testkit.CorpusFiles(t, filepath.Join(corpus, "bundles", name, version))
		if err := env.PushBundle(t.Context(), name+":v"+version, files); err != nil {
			t.Fatal(err)
		}
	}
	catalog, err := fs.Sub(os.DirFS(corpus), "catalog")
	if err == nil {
		err = env.PushCatalog(t.Context(), strings.TrimPrefix(catalogImage, "registry.test/"), catalog)
	}
	if err != nil {
		t.Fatal(err)
	}
	controller, err := env.StartController(t.Context(), filepath.Join(t.TempDir(), "controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// check gives what a check has found, by the names of Subscriptions, and its error.
func check(t *testing.T, env *environment.Environment, args ...string) (map[string]migration.OperatorReport, error) {
	t.Helper()
	output, err := env.CommandOutput(t.Context(), append([]string{"migrate", "check", "-o", "json"}, args...)...)
	var report migration.Report
	if decodeErr := json.Unmarshal([]byte(output), &report); decodeErr != nil {
		t.Fatal(err, decodeErr)
	}
	if len(report.Unknown) > 0 {
		t.Errorf("not known: %q", report.Unknown)
	}
	found := map[string]migration.OperatorReport{}
	for _, one := range report.Operators {
		found[one.Subscription.Name] = one
	}
	return found, err
}

// serveCatalog makes the one catalog of the cluster a ClusterCatalog: it was served by an address,
// and gets an image.
func serveCatalog(t *testing.T, env *environment.Environment) {
	t.Helper()
	if _, err := env.CommandOutput(t.Context(), "migrate", "catalogs"); err == nil || !strings.Contains(err.Error(), "has no image") {
		t.Errorf("a CatalogSource without an image: %v", err)
	}
	if err := env.Kubectl(t.Context(), "patch", "catalogsource", "community", "-n", "olm", "--type=merge", "-p", `{"spec":{"image":"`+catalogImage+`"}}`); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ args, want string }{
		{"", "ref: " + catalogImage},
		{"--apply --dry-run", "clustercatalog/community written (dry run)\n"},
		{"--apply", "clustercatalog/community written\n"},
		{"--apply", ""}, // there is nothing to do
	} {
		output, err := env.CommandOutput(t.Context(), append([]string{"migrate", "catalogs"}, strings.Fields(step.args)...)...)
		if err != nil || !strings.Contains(output, step.want) || step.want == "" && output != "" {
			t.Fatalf("migrate catalogs %s: %s, %v", step.args, output, err)
		}
	}
	if err := env.Kubectl(t.Context(), "wait", "--for=condition=Serving", "--timeout=60s", "clustercatalog/community"); err != nil {
		t.Fatal(err)
	}
}

// counts are how many objects are adopted, and of these labelled, how many are created
// and deleted, stay, and restart.
type counts struct{ Adopted, Unmarked, Created, Deleted, Stays, Restarted int }

func TestCheckOfAll(t *testing.T) {
	t.Parallel()
	env := start(t)
	found, err := check(t, env, "--all")
	if err == nil || len(found) != len(installed) {
		t.Errorf("%d operators, %v", len(found), err)
	}
	for name, one := range found {
		if one.State != classic.Ineligible || !slices.ContainsFunc(one.Findings, blocks("M3")) {
			t.Errorf("%s, which no catalog has: %s %v", name, one.State, one.Findings)
		}
	}
	serveCatalog(t, env)
	permitConditions(t, env)
	found, err = check(t, env, "--all")
	if err == nil || !strings.Contains(err.Error(), "1 operator of 7") {
		t.Errorf("all: %v", err)
	}
	want := map[string]counts{
		"mongodb-atlas-kubernetes": {10, 2, 6, 8, 20, 1},
		"my-grafana":               {26, 17, 6, 8, 0, 1},
		"kepler-operator":          {22, 13, 8, 28, 0, 1},
		// It has samples of a kind of its own that is called Secret, and no bundle of an extension may.
		"ecr-secret-operator":                            {},
		"rabbitmq-cluster-operator-stable-community-olm": {10, 5, 8, 26, 0, 1},
		"rabbitmq-messaging-topology-operator":           {70, 53, 19, 37, 0, 1},
		"webhook-operator":                               {14, 9, 8, 27, 0, 1},
	}
	got := map[string]counts{}
	for name, one := range found {
		got[name] = counts{len(one.Adopted), len(one.Unmarked), len(one.Created), len(one.Deleted), len(one.Stays), len(one.Restarted)}
		if isEligible := one.State == classic.Eligible; isEligible != (name != "ecr-secret-operator") {
			t.Errorf("%s: %s %v", name, one.State, one.Findings)
		}
		checkDeleted(t, one)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Nothing was written: what was found is what is there.
	again, _ := check(t, env, "--all")
	if diff := cmp.Diff(found, again); diff != "" {
		t.Errorf("the second time (-first +second)\n%s", diff)
	}
	checkOne(t, env)
}

// permitConditions is F70: the extension adds the OperatorCondition itself, and the ServiceAccount of an
// OperatorGroup needs permissions for that, which the check lists.
func permitConditions(t *testing.T, env *environment.Environment) {
	t.Helper()
	const name, namespace = "mongodb-atlas-kubernetes", "atlas"
	found, err := check(t, env, name)
	if missing := found[name].Missing; err == nil || len(missing) != 2 || !strings.Contains(missing[1], "[operatorconditions] Verbs:[create]") {
		t.Errorf("missing: %q, %v", missing, err)
	}
	for _, args := range [][]string{
		{"create", "role", "conditions", "-n", namespace, "--verb=get,create,update,patch", "--resource=operatorconditions.operators.coreos.com"},
		{"create", "rolebinding", "conditions", "-n", namespace, "--role=conditions", "--serviceaccount=" + namespace + ":tenant"},
	} {
		if err := env.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
}

func blocks(number string) func(migration.FindingReport) bool {
	return func(one migration.FindingReport) bool { return one.Check == number && one.Severity == classic.Blocks }
}

// checkDeleted fails if anything is deleted that classic OLM has not made by itself, or that is of
// somebody else.
func checkDeleted(t *testing.T, one migration.OperatorReport) {
	t.Helper()
	namespaces := map[string]bool{}
	for _, deleted := range one.Deleted {
		switch deleted.Kind {
		case "ClusterServiceVersion":
			if deleted.Name != one.Bundle {
				t.Errorf("%s: %s is deleted", one.Subscription.Name, deleted)
			}
			namespaces[deleted.Namespace] = true
		case "Subscription", "InstallPlan", "OperatorCondition", "Operator", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			isServing := strings.Contains(deleted.Name, "-service-")
			if name, _, _ := strings.Cut(one.Bundle, ".v"); !isServing && !strings.HasPrefix(deleted.Name, name[:min(len(name), 24)]) {
				t.Errorf("%s: %s is deleted", one.Subscription.Name, deleted)
			}
		default:
			t.Errorf("%s: %s is deleted", one.Subscription.Name, deleted)
		}
	}
	if len(one.Deleted) > 0 && !namespaces[one.Subscription.Namespace] {
		t.Errorf("%s: its ClusterServiceVersion stays, of %v", one.Subscription.Name, slices.Collect(maps.Keys(namespaces)))
	}
}

// checkOne looks at operators one by one.
func checkOne(t *testing.T, env *environment.Environment) {
	t.Helper()
	alone, err := check(t, env, "rabbit/rabbitmq-messaging-topology-operator")
	if err == nil || len(alone) != 1 || !slices.ContainsFunc(alone["rabbitmq-messaging-topology-operator"].Findings, blocks("M4")) {
		t.Errorf("without what it requires: %v, %v", alone, err)
	}
	if _, err := check(t, env, "rabbitmq-messaging-topology-operator", "rabbitmq-cluster-operator-stable-community-olm"); err != nil {
		t.Errorf("with what it requires: %v", err)
	}
	text, err := env.CommandOutput(t.Context(), "migrate", "check", "my-grafana")
	for _, line := range []string{
		"grafana/my-grafana   grafana-operator   5.6.3     Eligible   my-grafana   26        6         8         1",
		`  CustomResourceDefinition "grafanas.grafana.integreatly.org"`, `  Deployment "grafana-operator-controller-manager-v5" in namespace "grafana"`,
	} {
		if err != nil || !strings.Contains(text, line+"\n") {
			t.Errorf("%q is not in %s, %v", line, text, err)
		}
	}
	// G5: the rights that the ServiceAccount of an OperatorGroup lacks are listed, each.
	if err := env.Kubectl(t.Context(), "delete", "clusterrolebinding", "tenant-atlas"); err != nil {
		t.Fatal(err)
	}
	tenant, err := check(t, env, "mongodb-atlas-kubernetes")
	if one := tenant["mongodb-atlas-kubernetes"]; err == nil || len(one.Missing) == 0 || !slices.ContainsFunc(one.Findings, blocks("M7")) {
		t.Errorf("a ServiceAccount without rights: %v, %v", one, err)
	}
	// G16: the name is taken.
	taken := environment.Extension("kepler-operator", "another", "installer", func(ext *ocv1.ClusterExtension) { ext.Spec.Namespace = "kepler" })
	if err := env.Admin.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	if one, _ := check(t, env, "kepler-operator"); !slices.ContainsFunc(one["kepler-operator"].Findings, blocks("G16")) {
		t.Errorf("a name that is taken: %v", one)
	}
	if _, err := check(t, env, "kepler-operator", "--name=kepler"); err != nil {
		t.Errorf("another name: %v", err)
	}
}
