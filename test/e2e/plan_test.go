package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// plan runs kubectl extension plan, which may find that something is in the way.
func plan(t *testing.T, kubeconfig string, args ...string) (output string, blocked bool) {
	t.Helper()
	output, err := theSuite.LocalOutput(t.Context(), slices.Concat([]string{"plan", "--kubeconfig", kubeconfig}, args)...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && strings.Contains(err.Error(), "in the way") {
		return output, true
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output, false
}

// planned is the plan as programs read it.
func planned(t *testing.T, args ...string) preview.Preview {
	t.Helper()
	output, _ := plan(t, theSuite.Cluster.Kubeconfig(), append(args, "-o", "json")...)
	var made preview.Preview
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return made
}

// actions are what a plan does, as "change Deployment ns/name".
func actions(made preview.Preview) []string {
	var found []string
	for _, shown := range made.Objects {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s", shown.Action, shown.Kind, strings.TrimPrefix(shown.Namespace+"/"+shown.Name, "/"))))
	}
	return found
}

func contains(t *testing.T, output string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(output, want) {
			t.Errorf("got\n%s\nwant in it %q", output, want)
		}
	}
}

// manifestOf writes an extension to a file.
func manifestOf(t *testing.T, extension *ocv1.ClusterExtension) (file string) {
	t.Helper()
	extension = extension.DeepCopy()
	extension.APIVersion, extension.Kind = ocv1.GroupVersion.String(), "ClusterExtension"
	text, err := yaml.Marshal(extension)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "extension.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestP1ImageOfAnUpgrade has a new version in which only an image is another one.
func TestP1ImageOfAnUpgrade(t *testing.T) {
	t.Parallel()
	const name = "p1"
	// Without rights: roles have the version in their names.
	const rights = `      clusterPermissions:
      - serviceAccountName: p1
        rules:
        - {apiGroups: [p1.test], resources: [things], verbs: [get, list, watch]}
`
	both := []testkit.Operator{{Package: name, Version: "1.0.0"}, {Package: name, Version: "1.1.0"}}
	for _, operator := range both {
		files := operator.Bundle()
		csv := files["manifests/csv.yaml"]
		csv.Data = bytes.Replace(csv.Data, []byte(rights), nil, 1)
		pushBundle(t, operator, files)
	}
	publishCatalog(t, name, testkit.Catalog(registryHost, both...))
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")

	made := planned(t, name, "--version", "1.1.0")
	if diff := gocmp.Diff([]string{"change Deployment p1/p1"}, actions(made)); diff != "" {
		t.Fatalf("actions (-want +got)\n%s", diff)
	}
	if hunks := strings.Count(made.Objects[0].Diff, "\n@@ "); hunks != 1 {
		t.Errorf("%d hunks, want one:\n%s", hunks, made.Objects[0].Diff)
	}
	contains(t, made.Objects[0].Diff, "image: registry.test/p1:operator-1.0.0\n", "image: registry.test/p1:operator-1.1.0\n")
	workload := object.Reference{Group: "apps", Kind: "Deployment", Namespace: name, Name: name}
	images := []preview.ImageChange{{Workload: workload, Container: "manager", Before: "registry.test/p1:operator-1.0.0", After: "registry.test/p1:operator-1.1.0"}}
	if diff := gocmp.Diff(images, made.Images); diff != "" {
		t.Errorf("images (-want +got)\n%s", diff)
	}
	if diff := gocmp.Diff([]object.Reference{workload}, made.Restarts); diff != "" {
		t.Errorf("restarts (-want +got)\n%s", diff)
	}
	text, _ := plan(t, theSuite.Cluster.Kubeconfig(), name, "--version", "1.1.0")
	contains(t, text, "p1: from \"p1.v1.0.0\" to \"p1.v1.1.0\" version \"1.1.0\"", "1 to change, ", "\npods restart: 1\n")

	// What is pinned is there, and nothing would be done.
	if made := planned(t, name); len(made.Objects) > 0 || len(made.Obstacles) > 0 {
		t.Errorf("the plan to stay has %v, and in the way %q", actions(made), made.Obstacles)
	}
}

// secretYAML is a Secret of a bundle.
const secretYAML = `apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {same: always-the-very-same, password: %q}
`

// TestP2ValuesOfSecrets says that a value changes, and neither the one before nor the one
// after.
func TestP2ValuesOfSecrets(t *testing.T) {
	t.Parallel()
	const name = "p2"
	values := []string{"hunter2-of-the-old-version", "correct-horse-of-the-new-version"}
	both := operators(name, "1.0.0", "1.1.0")
	for i, operator := range both {
		files := operator.Bundle()
		files["manifests/secret.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, secretYAML, values[i])}
		pushBundle(t, operator, files)
	}
	publishCatalog(t, name, testkit.Catalog(registryHost, both...))
	makeNamespace(t, name)
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	serving(t, name)
	first := environment.Extension(name, name, installer, fromCatalog(name), version("1.0.0"))
	outputs := []string{}
	look := func(args ...string) {
		t.Helper()
		for _, format := range []string{"text", "diff", "json"} {
			output, _ := plan(t, theSuite.Cluster.Kubeconfig(), append(args, "-o", format)...)
			outputs = append(outputs, output)
		}
	}
	look("-f", manifestOf(t, first))
	extendOnly(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	look(name, "--version", "1.1.0")

	for _, value := range append(values, "always-the-very-same") {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		for _, output := range outputs {
			if strings.Contains(output, value) || strings.Contains(output, encoded[:len(encoded)-4]) {
				t.Errorf("%q is in the output:\n%s", value, output)
			}
		}
	}
	contains(t, outputs[4], "-  password: masked\n", "+  password: changed\n", "   same: unchanged\n")
}

// TestP3DroppedObjects names what the new version does not have.
func TestP3DroppedObjects(t *testing.T) {
	t.Parallel()
	const name = "p3"
	all := operators(name, "1.0.0", "1.1.0")
	all[0].ConfigMaps = append(all[0].ConfigMaps, "dropped")
	publish(t, all...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	made := planned(t, name, "--version", "1.1.0")
	for _, want := range []string{"delete ConfigMap p3/dropped", "change ConfigMap p3/settings", "change Deployment p3/p3"} {
		if got := actions(made); !slices.Contains(got, want) {
			t.Errorf("actions are %q, want %q among them", got, want)
		}
	}
}

// TestP4DefinitionsThatBreakObjects names the change, and the object.
func TestP4DefinitionsThatBreakObjects(t *testing.T) {
	t.Parallel()
	const name = "p4"
	publishEdited(t, name, map[string]string{"size: {type: integer}": "size: {type: integer, enum: [1, 2]}"})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	eventually(t, "storing an object", func(ctx context.Context) error { return theSuite.Admin.Create(ctx, thing(name, name, 7)) })
	text, blocked := plan(t, theSuite.Cluster.Kubeconfig(), name, "--version", "1.1.0")
	if !blocked {
		t.Error("nothing is in the way")
	}
	contains(t, text, `CRD "things.p4.test": v1: ^.spec.size: enum: `, "p4/stored: spec.size: ")
}

// TestP5WithoutTheRightToPatch says that the API server was not asked, and computes the same.
func TestP5WithoutTheRightToPatch(t *testing.T) {
	t.Parallel()
	const name = "p5"
	reader := user(t, "p5-reader",
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	narrow := user(t, "p5-narrow", readRule("clusterextensions"), readRule("clustercatalogs"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}})
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	admin, _ := plan(t, theSuite.Cluster.Kubeconfig(), name, "--version", "1.1.0", "-o", "diff")
	text, blocked := plan(t, reader, name, "--version", "1.1.0", "-o", "diff")
	if blocked || !strings.Contains(text, "\n# without the server: you may not write 3 objects") {
		t.Errorf("blocked: %t; got\n%s", blocked, text)
	}
	contains(t, text, "as you may not act as it")
	if diff := gocmp.Diff(diffOf(admin), diffOf(text)); diff != "" {
		t.Errorf("the diff is another one than that of the administrator (-admin +reader)\n%s", diff)
	}
	// Not even the objects may be read.
	text, _ = plan(t, narrow, name, "--version", "1.1.0", "-o", "diff")
	contains(t, text, "you may not read ", "-  version: 1.0.0\n", "+  version: 1.1.0\n", "it is taken to be what the catalogs have")
}

// diffOf leaves out what is said before and between.
func diffOf(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestP6TheSamePlanTwice has every format twice, of an upgrade and of an install that
// allocates addresses.
func TestP6TheSamePlanTwice(t *testing.T) {
	t.Parallel()
	const name, other = "p6", "p6-other"
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	publishEdited(t, other, map[string]string{"spec:\n  selector": "spec:\n  type: NodePort\n  selector"})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	extend(t, other, version("1.0.0"))
	installed(t, other, "1.0.0")
	absent := manifestOf(t, environment.Extension("p6-absent", other, installer, fromCatalog(other)))
	for _, args := range [][]string{{name, "--version", "1.1.0"}, {other, "--version", "1.1.0"}, {"-f", absent}} {
		for _, format := range []string{"text", "diff", "json"} {
			first, _ := plan(t, theSuite.Cluster.Kubeconfig(), append(args, "-o", format)...)
			second, _ := plan(t, theSuite.Cluster.Kubeconfig(), append(args, "-o", format)...)
			if diff := gocmp.Diff(first, second); diff != "" {
				t.Errorf("%q as %s (-first +second)\n%s", args, format, diff)
			}
		}
	}
}

// TestP7ObjectsOfAnotherExtension has two extensions want the same definition.
func TestP7ObjectsOfAnotherExtension(t *testing.T) {
	t.Parallel()
	const name, other = "p7", "p7-other"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	makeNamespace(t, other)
	makeAccount(t, other)
	file := manifestOf(t, environment.Extension(other, name, installer, fromCatalog(name)))
	text, blocked := plan(t, theSuite.Cluster.Kubeconfig(), "-f", file)
	if !blocked {
		t.Error("nothing is in the way")
	}
	contains(t, text, `conflict   CustomResourceDefinition "things.p7.test"`, `belongs to ClusterExtension "p7"`,
		"hand all its objects over", `lacks `, "p7-other: from nothing to \"p7.v1.0.0\"")
}

// TestP8ManyObjects has a bundle of a thousand objects.
func TestP8ManyObjects(t *testing.T) {
	t.Parallel()
	const name, objects = "p8", 1000
	operator := testkit.Operator{Package: name, Version: "1.0.0"}
	for i := range objects {
		operator.ConfigMaps = append(operator.ConfigMaps, fmt.Sprintf("settings-%04d", i))
	}
	publish(t, operator)
	serving(t, name)
	makeNamespace(t, name)
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	made := costs(t, environment.Extension(name, name, installer, fromCatalog(name)))
	if made.Counts.Create < objects || len(made.Objects) != made.Counts.Create {
		t.Errorf("%d to create, %d listed", made.Counts.Create, len(made.Objects))
	}
}

// TestP8LargestBundle has the largest bundle of the corpus.
func TestP8LargestBundle(t *testing.T) {
	t.Parallel()
	const name = "p8-largest"
	folder := largestBundle(t)
	operator := testkit.Operator{Package: filepath.Base(filepath.Dir(folder)), Version: filepath.Base(folder)}
	pushBundle(t, operator, withoutDependencies(t, folder))
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	serving(t, name)
	makeNamespace(t, name)
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	made := costs(t, environment.Extension(name, operator.Package, installer, fromCatalog(name)))
	if made.Counts.Create == 0 || len(made.Obstacles) > 0 {
		t.Errorf("of %s, %d to create, in the way: %q", operator.Name(), made.Counts.Create, made.Obstacles)
	}
}

// withoutDependencies has the files of a bundle without what they require, which is not there.
func withoutDependencies(t *testing.T, folder string) fs.FS {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(copied, "metadata", "dependencies.yaml")); err != nil {
		t.Fatal(err)
	}
	return os.DirFS(copied)
}

// largestBundle is the folder of the bundle of the corpus with the largest files.
func largestBundle(t *testing.T) string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(testkit.Corpus(t), "bundles", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "manifests", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			sizes[folder] += info.Size()
		}
	}
	return slices.MaxFunc(folders, func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
}

// costs plans an extension that is not there, and bounds the memory that it takes. How long it
// takes depends on what else the machine does, and is only told.
func costs(t *testing.T, extension *ocv1.ClusterExtension) preview.Preview {
	t.Helper()
	const most = 200 << 20
	begin := time.Now()
	output, usage, err := theSuite.LocalUsage(t.Context(), "plan", "--kubeconfig", theSuite.Cluster.Kubeconfig(), "-f", manifestOf(t, extension), "-o", "json")
	took := time.Since(begin)
	var made preview.Preview
	if decodeErr := json.Unmarshal([]byte(output), &made); decodeErr != nil {
		t.Fatalf("%v, %v", err, decodeErr)
	}
	t.Logf("%d objects in %s, %d MiB, %d KiB of output", len(made.Objects), took.Round(time.Millisecond), usage>>20, len(output)>>10)
	if usage > most {
		t.Errorf("it took %d MiB, want at most %d", usage>>20, most>>20)
	}
	return made
}

// comesTrue plans an edit of an extension, makes it, and holds the plan against what the
// controller then sends to the API server.
func comesTrue(t *testing.T, name string, planning []string, edit func(), wanted string) {
	t.Helper()
	made := planned(t, planning...)
	if len(made.Obstacles) > 0 {
		t.Fatalf("in the way of %q: %q", planning, made.Obstacles)
	}
	requests, err := environment.Planned(theSuite.Admin.RESTMapper(), made)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	edit()
	installed(t, name, wanted)
	if diff := gocmp.Diff(requests, requestsSent(t, name, begin)); diff != "" {
		t.Errorf("requests of %q (-planned +sent)\n%s", planning, diff)
	}
}

// requestsSent are the writes of the ServiceAccount of an extension.
func requestsSent(t *testing.T, name string, since time.Time) []string {
	t.Helper()
	all, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var requests []string
	for _, request := range all {
		who := request.ImpersonatedUser
		if who == nil || !strings.HasPrefix(who.Username, "system:serviceaccount:"+name+":") || !request.IsWrite() || request.StageTimestamp.Before(since) {
			continue
		}
		requests = append(requests, request.Written())
	}
	slices.Sort(requests)
	return requests
}
