package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestLogOfALife has a controller of its own, and holds all that it has logged between
// its start and its stop against what has happened: a line for each change, and none
// twice. Each write of content has its line, and each such line its write.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestLogOfALife(t *testing.T) {
	const name, broken = "logged", "logged-broken"
	began := time.Now()
	said := logOf(t, true, func() { liveLogged(t, name, broken) })
	if diff := cmp.Diff(contentWritten(t, name, began), contentTold(said)); diff != "" {
		t.Errorf("writes of content (-sent +told):\n%s", diff)
	}
	const changed = `changed object={"kind":"ConfigMap","name":"settings","namespace":"logged"} fields=data.version`
	if !slices.ContainsFunc(said, func(line logLine) bool { return line.String() == changed }) {
		t.Errorf("the log does not say %q", changed)
	}

	want := map[string][]string{
		name: {
			"pulled the image of a bundle image=registry.test/logged:v1.0.0",
			"installed version=1.0.0 created=7 changed=0 removed=0",
			"pulled the image of a bundle image=registry.test/logged:v1.1.0",
			`repaired object={"kind":"ConfigMap","name":"settings","namespace":"logged"} missing=true`,
			`repaired object={"kind":"ConfigMap","name":"settings","namespace":"logged"} missing=false fields=data.version writtenBy="rival"`,
			"upgraded from=1.0.0 version=1.1.0 created=2 changed=2 removed=2",
			"removed objects=7 stay=false",
		},
		"catalog " + name:   {"pulled and stored the catalog packages=1 bundles=2 objects=4", "removed the catalog"},
		"catalog " + broken: {"removed the catalog"},
		"": {
			"starting", "leadership taken", "leadership given up or lost", "ready", "ready", "ready", "ready",
			"there is no signature policy: images are accepted from anyone", "there is no signature policy: images are accepted from anyone",
		},
	}
	changes, reasons := map[string][]string{}, map[string][]string{}
	for _, line := range said {
		if _, isWrite := line.write(); isWrite && line.text("msg") != "repaired" {
			continue
		}
		if line.isReason() {
			reasons[line.object()] = append(reasons[line.object()], line.String()+" "+line.text("stage")+" "+line.text("reason"))
			continue
		}
		changes[line.object()] = append(changes[line.object()], line.String())
	}
	slices.Sort(changes[""])
	slices.Sort(want[""])
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for object, want := range map[string][]string{
		name: {
			"not as wanted validate operation cannot proceed", "not as wanted apply pre-authorization failed",
			"waits for approval", "not as wanted resolve error upgrading from",
		},
		"catalog " + broken: {"status changed"},
	} {
		got := reasons[object]
		if len(got) != len(want) || !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("the log says of %s %q, want %q", object, got, want)
		}
	}
}

// contentWritten counts what was written as the ServiceAccount of an extension.
func contentWritten(t *testing.T, extension string, since time.Time) map[string]int {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, request := range requests {
		isContent := request.ImpersonatedUser != nil && request.ImpersonatedUser.Username == "system:serviceaccount:"+extension+":"+installer
		if isContent && request.IsWrite() && request.ResponseStatus.Code < 300 && request.StageTimestamp.After(since) {
			counts[fmt.Sprintf("%s %s/%s", request.Verb, request.ObjectRef.Namespace, request.ObjectRef.Name)]++
		}
	}
	return counts
}

// contentTold counts what the log says of that.
func contentTold(said []logLine) map[string]int {
	counts := map[string]int{}
	for _, line := range said {
		if write, isWrite := line.write(); isWrite {
			counts[write]++
		}
	}
	return counts
}

// liveLogged takes an extension from a first failure to its end.
func liveLogged(t *testing.T, name, broken string) {
	t.Helper()
	publishEdited(t, name, map[string]string{"verbs: [get, list, watch]": "verbs: [get, list, watch, delete]"})
	serving(t, name)
	brokenCatalog(t, broken)
	makeNamespace(t, name)
	extendOnly(t, name, version("1.0.0"), func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
		}}
	})
	conditionContains(t, name, ocv1.TypeProgressing, "service account")
	makeAccount(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, "pre-authorization failed")
	grant(t, name, "cluster-admin")
	installed(t, name, "1.0.0")
	deploymentAvailable(t, name, name)
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded")

	update(t, name, version("1.x"))
	conditionContains(t, name, ocv1.TypeReady, "True ApprovalPending")
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
	exists(t, &corev1.ConfigMap{}, name, "settings")
	eventTells(t, name, "Repaired", `ConfigMap "settings" in namespace "logged"`)
	drift(t, name)

	update(t, name, version("7.0.0"))
	conditionContains(t, name, ocv1.TypeProgressing, "no bundles found")
	update(t, name, func(extension *ocv1.ClusterExtension) {
		version("1.x")(extension)
		extension.Spec.Install.Preflight.Permissions.ApprovedVersion = "1.1.0"
	})
	installed(t, name, "1.1.0")
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	eventTells(t, name, "Removed", "the cluster deletes the 7 objects that it has installed")
	for _, catalog := range []string{name, broken} {
		remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: catalog}})
	}
}

// rivalling is what another field manager writes.
const rivalling = "rivalling"

// drift has another field manager change an object of each extension, and waits until all
// are changed back.
func drift(t *testing.T, extensions ...string) {
	t.Helper()
	settings := func(extension string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: extension, Name: "settings"}}
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"version":%q}}`, rivalling))
	for _, extension := range extensions {
		if err := theSuite.Admin.Patch(t.Context(), settings(extension), patch, client.FieldOwner("rival")); err != nil {
			t.Fatal(err)
		}
	}
	for _, extension := range extensions {
		eventually(t, "repair of "+extension, func(ctx context.Context) error {
			found := settings(extension)
			if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
				return err
			}
			if found.Data["version"] == rivalling {
				return errors.New("still changed")
			}
			return nil
		})
	}
}

// TestLogOfAFleet: there are as many lines as changes when many extensions change at a
// time.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestLogOfAFleet(t *testing.T) {
	fleet := newFleet(t, "told", 50, func(int) bool { return false })
	said := logOf(t, false, func() {
		serving(t, fleet.name)
		fleet.install(t)
		eventually(t, "the installations", fleet.checkReady)
		drift(t, fleet.names...)
		fleet.upgrade(t)
		for _, name := range fleet.names {
			installed(t, name, "1.1.0")
		}
		eventually(t, "the upgrades", fleet.checkReady)
		fleet.remove(t)
		for _, name := range fleet.names {
			gone(t, &ocv1.ClusterExtension{}, "", name)
		}
	})
	got := map[string][]string{}
	for _, line := range said {
		if object := line.object(); slices.Contains(fleet.names, object) {
			got[object] = append(got[object], line.text("msg"))
		}
	}
	want := []string{
		"pulled the image of a bundle", "created", "created", "created", "created", "created", "created", "created", "created", "installed",
		"repaired",
		"pulled the image of a bundle", "deleted", "deleted", "deleted", "created", "created", "created", "changed", "changed", "upgraded",
		"removed",
	}
	for _, name := range fleet.names {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("lines about %s (-want +got):\n%s", name, diff)
		}
	}
}

// logOf gives what a controller of its own says at V(0) from its start, over what is done
// with it, to its stop.
func logOf(t *testing.T, race bool, does func()) []logLine {
	t.Helper()
	path := logOfItsOwn(t, func() { replaceController(t, race, "--v=0") })
	does()
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	// What is left has finalizers that only a controller takes off.
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
	return readLog(t, path)
}

// brokenCatalog makes a catalog whose image does not exist.
func brokenCatalog(t *testing.T, name string) {
	t.Helper()
	if err := theSuite.CreateCatalog(t.Context(), name, catalogRef(name, "none"), func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	eventually(t, "catalog "+name, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady); ready == nil || ready.Status != metav1.ConditionFalse {
			return fmt.Errorf("conditions are %+v", found.Status.Conditions)
		}
		return nil
	})
}

// logLine is a line of the log.
type logLine map[string]any

// text is the value of a key.
func (l logLine) text(key string) string {
	if text, ok := l[key].(string); ok {
		return text
	}
	data, err := json.Marshal(l[key])
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// object is what a line is about, empty for the process.
func (l logLine) object() string {
	switch {
	case l["ClusterExtension"] != nil:
		return l.text("name")
	case l["ClusterCatalog"] != nil:
		return "catalog " + l.text("name")
	}
	return ""
}

// write is the request that a line tells of, if it tells of one to content.
func (l logLine) write() (string, bool) {
	object, isObject := l["object"].(map[string]any)
	verb := map[string]string{"created": "create", "changed": "patch", "a patch changed nothing": "patch", "deleted": "delete"}[l.text("msg")]
	if l.text("msg") == "repaired" {
		verb = map[any]string{true: "create", false: "patch"}[l["missing"]]
	}
	namespace, _ := object["namespace"].(string)
	return fmt.Sprintf("%s %s/%v", verb, namespace, object["name"]), isObject && verb != ""
}

// isReason says that a line tells why something is not as wanted, and not of a change.
func (l logLine) isReason() bool {
	return slices.Contains([]string{"not as wanted", "waits for approval", "status changed"}, l.text("msg"))
}

// String is what a line says, without what differs from run to run.
func (l logLine) String() string {
	text := l.text("msg")
	for _, key := range []string{
		"image", "from", "version", "created", "changed", "removed", "packages", "bundles", "object", "objects", "missing", "fields", "writtenBy", "stay",
	} {
		isOfChange := key != "version" && key != "image" || l["bundle"] != nil || l["digest"] != nil
		if l[key] != nil && isOfChange && !l.isReason() {
			text += " " + key + "=" + l.text(key)
		}
	}
	return text
}

// addresses are those of memory.
var addresses = regexp.MustCompile(`\b0x[0-9a-f]{6,}`)

// readLog gives what each line says. Lines that are not JSON, errors, stacks, addresses
// and what was said before have no place in it.
func readLog(t *testing.T, path string) []logLine {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var said []logLine
	known := map[string]bool{}
	for text := range strings.Lines(string(data)) {
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Errorf("%v: %s", err, text)
			continue
		}
		if line.text("msg") == "Unexpected error when reading response body" && line.text("error") == "context canceled" {
			continue // the library's word for a pass that was ended while it read an answer
		}
		if line.text("level") != "info" || line["stacktrace"] != nil || addresses.MatchString(text) {
			t.Errorf("unexpected: %s", text)
		}
		if _, rest, _ := strings.Cut(text, `"msg"`); known[rest] {
			t.Errorf("said twice: %s", text)
		} else {
			known[rest] = true
		}
		said = append(said, line)
	}
	return said
}
