package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// A row says what an extension is at, what waits for a person, and what speaks against it.
func TestRowsOfExtensions(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus, reason, message string) func(*ocv1.ClusterExtension) {
		return func(ext *ocv1.ClusterExtension) {
			ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Status: status, Reason: reason, Message: message}}
		}
	}
	add := func(kind, reason, message string) func(*ocv1.ClusterExtension) {
		return func(ext *ocv1.ClusterExtension) {
			ext.Status.Conditions = append(ext.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
	}
	for name, test := range map[string]struct {
		ext    *ocv1.ClusterExtension
		newest string
		want   extensionRow
	}{
		"ready": {installed("x", "1.0.0"), "", extensionRow{Health: health{"good", "Ready", ""}, Version: "1.0.0"}},
		"an upgrade": {
			installed("x", "1.0.0"), "1.10.0",
			extensionRow{Health: health{"good", "Ready", ""}, Version: "1.0.0", Newer: "1.10.0"},
		},
		"no upgrade": {installed("x", "1.0.0"), "0.9.0", extensionRow{Health: health{"good", "Ready", ""}, Version: "1.0.0"}},
		"pending": {
			installed("x", "1.0.0", ready(metav1.ConditionTrue, ocv1.ReasonApprovalPending, "waits"), func(ext *ocv1.ClusterExtension) {
				ext.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Version: "1.1.0"}}
			}), "",
			extensionRow{Health: health{"good", "Ready, ApprovalPending", "waits"}, Version: "1.0.0", Pending: "1.1.0"},
		},
		"deprecated": {
			installed("x", "1.0.0", add(ocv1.TypeDeprecated, ocv1.ReasonDeprecated, "use y")), "",
			extensionRow{Health: health{"good", "Ready", ""}, Version: "1.0.0", Deprecated: "use y"},
		},
		"failing": {
			installed("x", "1.0.0", ready(metav1.ConditionFalse, "Unavailable", "no pods")), "",
			extensionRow{Health: health{"bad", "Unavailable", "no pods"}, Version: "1.0.0"},
		},
		"stuck": {
			installed("x", "1.0.0", ready(metav1.ConditionFalse, "Retrying", "m"), add(ocv1.TypeStalled, "Blocked", "denied")), "",
			extensionRow{Health: health{"bad", "Blocked", "denied"}, Version: "1.0.0"},
		},
		"at work": {
			installed("x", "1.0.0", ready(metav1.ConditionUnknown, ocv1.ReasonRollingOut, "1 of 2")), "",
			extensionRow{Health: health{"unknown", "RollingOut", "1 of 2"}, Version: "1.0.0"},
		},
		"not looked at": {
			installed("x", "1.0.0", func(ext *ocv1.ClusterExtension) { ext.Generation = 2 }), "",
			extensionRow{Health: health{"busy", "Waiting", "no controller has looked at this spec yet"}, Version: "1.0.0"},
		},
		"suspended": {
			installed("x", "1.0.0", add(ocv1.TypeSuspended, ocv1.ReasonUserRequested, "")), "",
			extensionRow{Health: health{"rest", "Suspended", ""}, Version: "1.0.0"},
		},
		"being deleted": {
			installed("x", "1.0.0", func(ext *ocv1.ClusterExtension) { ext.DeletionTimestamp = &metav1.Time{Time: testNow} }), "",
			extensionRow{Health: health{"busy", "Terminating", ""}, Version: "1.0.0"},
		},
		"nothing": {
			&ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, "1.0.0",
			extensionRow{Health: health{"busy", "Waiting", "no controller has looked at this spec yet"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newExtensionRow(test.ext, test.newest)
			got.Name, got.Package, got.Namespace, got.Search = "", "", "", ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The newest version is that in the channels of the extension, whatever its range says: what is
// left out of that is no upgrade.
func TestTheNewestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.catalogs.Items = []*ocv1.ClusterCatalog{served("c")}
	w.newest = map[string]map[string]string{"x": {"stable": "1.2.0", "fast": "2.0.0"}, "y": {"stable": "9.0.0"}}
	w.change(installed("x", "1.0.0"), installed("stable", "1.0.0", func(ext *ocv1.ClusterExtension) {
		ext.Spec.Source.Catalog.PackageName, ext.Spec.Source.Catalog.Channels = "x", []string{"stable"}
	}), installed("other", "1.0.0"))
	body := w.get(t, "/extensions")
	for _, want := range []string{`data-label="Newest in its channels">2.0.0<`, `data-label="Newest in its channels">1.2.0<`, `data-label="Newest in its channels">—<`} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(body, want), body)
		}
	}
	if filtered := w.get(t, "/extensions?q=STABLE+newer"); strings.Count(filtered, "<tr data-name") != 1 || strings.Contains(filtered, "data-live") {
		t.Errorf("filtered:\n%s", filtered)
	}
}

// The filter knows the words of the command line too, which reasons of the controller replace.
func TestTheFilterKnowsHealth(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(installed("stuck", "1.0.0", func(ext *ocv1.ClusterExtension) {
		ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeStalled, Status: metav1.ConditionTrue, Reason: "Blocked"}}
	}), installed("well", "1.0.0"))
	for filter, want := range map[string]string{"stalled": "stuck", "Blocked": "stuck", "bad": "stuck", "ready": "well", "good": "well"} {
		body := w.get(t, "/extensions?q="+filter)
		if strings.Count(body, "<tr data-name") != 1 || !strings.Contains(body, `<tr data-name="`+want+`"`) {
			t.Errorf("%s:\n%s", filter, body)
		}
	}
}

// 1,000 extensions are one page, which is made in a moment; of more than a table has, it is
// said how many are missing.
func TestManyExtensions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(many(1000)...)
	started := time.Now()
	body := w.get(t, "/extensions")
	t.Logf("1,000 rows take %s and %d bytes", time.Since(started), len(body))
	if got := strings.Count(body, "<tr data-name"); got != 1000 {
		t.Errorf("got %d rows", got)
	}
	w.change(many(maxRows + 7)...)
	body = w.get(t, "/extensions")
	if got := strings.Count(body, "<tr data-name"); got != maxRows || !strings.Contains(body, "7 more extensions are not shown") {
		t.Errorf("got %d rows", got)
	}
}

// Whoever may read nothing but extensions sees these, and on each page what is missing.
func TestPagesSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(installed("x", "1.0.0"))
	w.catalogs.Err, w.err = errForbidden, errForbidden
	w.situation.Unknown = []string{"reading events: forbidden", "which objects it has: forbidden"}
	for path, want := range map[string][]string{
		"/extensions":        {">x</a>", "ClusterCatalogs, which say which versions there are: clustercatalogs"},
		"/extensions/x":      {"why it is this version: ", "reading events: ", "which objects it has: ", "packageName: x", "Ready"},
		"/extensions/x/plan": {"the plan: "},
		"/packages/c/x":      {"ClusterCatalog c", "clustercatalogs.olm.operatorframework.io is forbidden"},
		"/catalogs":          {"ClusterCatalogs: clustercatalogs", "There are no catalogs to show."},
		"/packages":          {"ClusterCatalogs: clustercatalogs"},
	} {
		_, body, _ := w.ask(t, path)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: %q is missing in\n%s", path, text, body)
			}
		}
		for _, text := range []string{"Nothing would change", "There is no ClusterCatalog"} {
			if strings.Contains(body, text) {
				t.Errorf("%s: %q is not known, and in\n%s", path, text, body)
			}
		}
	}
	w.catalogs.Items = []*ocv1.ClusterCatalog{served("c")}
	for path, want := range map[string]int{"/packages/c/x": http.StatusServiceUnavailable, "/packages/d/x": http.StatusServiceUnavailable, "/extensions/y": http.StatusNotFound, "/y": http.StatusNotFound} {
		if code, body, _ := w.ask(t, path); code != want {
			t.Errorf("%s: code %d, want %d\n%s", path, code, want, body)
		}
	}
	w.extensions.Items, w.extensions.Err = nil, errForbidden
	if code, body, _ := w.ask(t, "/extensions/x"); code != http.StatusServiceUnavailable || !strings.Contains(body, "forbidden") {
		t.Errorf("code %d\n%s", code, body)
	}
}

// The page of an extension has the answer of explain, the conditions, newest first, events,
// objects and manifests.
func TestThePageOfAnExtension(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.catalogs.Items = []*ocv1.ClusterCatalog{served("c")}
	w.explained = Explanation{Lines: []string{`"x.v1.1.0" version "1.1.0" from catalog "c"`}, Choices: []Choice{{Version: "1.1.0", Bundle: "x.v1.1.0", Reason: "CHOSEN"}}}
	w.situation = Situation{
		Events: []Event{{Last: testNow.Add(-time.Hour), Reason: "Old"}, {Last: testNow.Add(-time.Minute), Reason: "New", Message: "repaired"}},
		Objects: []overview.Object{
			{Kind: "ClusterRole", Name: "x", Health: overview.Present},
			{Kind: "Deployment", Namespace: "x-system", Name: "x", Health: overview.NotReady, Message: "0 of 1"},
			{Kind: "Service", Namespace: "x-system", Name: "x", Health: overview.Missing},
		},
		More: 3, Rights: "kind: Role\n",
	}
	w.pkg = &resolve.Package{
		Name:     "x",
		Channels: []resolve.Channel{{Name: "stable", Entries: []resolve.Entry{{Name: "x.v1.0.0"}, {Name: "x.v1.1.0", Replaces: "x.v1.0.0"}}}},
		Bundles:  []resolve.Bundle{{Name: "x.v1.0.0", Version: "1.0.0"}, {Name: "x.v1.1.0", Version: "1.1.0"}},
	}
	w.packages = []catalogsummary.Package{{Name: "x"}}
	w.change(installed("x", "1.0.0", func(ext *ocv1.ClusterExtension) {
		ext.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual
		ext.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "blue"}
		ext.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Name: "x.v1.1.0", Version: "1.1.0"}, Digest: "sha256:ab", PlanSummary: "2 to change"}
	}))
	body := w.get(t, "/extensions/x")
	for _, want := range []string{
		"version &#34;1.1.0&#34; from catalog", "2 to change", "1 min",
		"In no namespace", "Namespace x-system", `<span class="health bad">NotReady</span><span class="minor">0 of 1</span>`, "and 3 more", "Rights in use", "kind: Role", "approvedVersion: 1.1.0", "approvedDigest: sha256:ab",
		"To stay with 1.0.0", "version: 1.0.0", "team: blue", `src="/extensions/x/graph.svg"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if n := strings.Count(body, "Namespace x-system"); n != 1 {
		t.Errorf("a namespace is there %d times", n)
	}
	if strings.Contains(body, "kubectl.kubernetes.io/last-applied-configuration") || strings.Index(body, "repaired") > strings.Index(body, "Old") {
		t.Errorf("got\n%s", body)
	}
	code, drawing, header := w.ask(t, "/extensions/x/graph.svg")
	if code != http.StatusOK || header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(drawing, "class=\"path\"") {
		t.Errorf("code %d, %v\n%s", code, header, drawing)
	}
	w.packages = nil
	if body := w.get(t, "/extensions/x"); strings.Contains(body, "graph.svg") {
		t.Error("there is a graph of a package that no catalog has")
	}
	if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

// A plan is shown with its diff, as far as there is room.
func TestThePageOfAPlan(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(installed("x", "1.0.0"))
	w.preview = preview.Preview{
		Installed: &preview.Bundle{Name: "x.v1.0.0"}, Chosen: &preview.Bundle{Name: "x.v1.1.0", Version: "1.1.0", Catalog: "c"},
		Counts: preview.Counts{Change: 1}, Obstacles: []string{"it lacks 3 rights"}, Waits: "approval", Unknown: []string{"whether it exists"}, DependsOnCluster: true,
		Objects: []preview.Object{
			{Reference: object.Reference{Kind: "ConfigMap", Name: "x"}, Action: preview.Change, Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old: <b>\n+new: 1\n"},
			{Reference: object.Reference{Kind: "ConfigMap", Name: "y"}, Action: preview.Create, Diff: "+" + strings.Repeat("y", maxTextBytes) + "\n"},
			{Reference: object.Reference{Kind: "ConfigMap", Name: "z"}, Action: preview.Create, Diff: "+unshown\n"},
		},
	}
	body := w.get(t, "/extensions/x/plan")
	for _, want := range []string{"1 to change", "it lacks 3 rights", "It would wait for", "whether it exists", "the chart has looked at the cluster, as you", "<del>-old: &lt;b&gt;</del>", "<ins>&#43;new: 1</ins>", "ConfigMap"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%.5000s", want, body)
		}
	}
	if strings.Contains(body, "unshown") || strings.Contains(body, "--- a") {
		t.Error("there is more than there is room for")
	}
}

const samplePackage = `{"schema":"olm.package","name":"p","defaultChannel":"stable","description":"What p does.","icon":{"base64data":"%s","mediatype":"image/png"}}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"r/p:v1","relatedImages":[{"image":"a"},{"image":"b"}],"properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},
{"type":"olm.csv.metadata","value":{"displayName":"The P","provider":{"name":"P Inc"},"description":"# P\n\n**bold** [site](https://p.test) ![](https://p.test/i.png)","installModes":[{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace"}],"links":[{"name":"n","url":"javascript:alert(1)"},{"name":"n","url":"https://p.test/docs"}]}}]}
`

var pixel = base64.StdEncoding.EncodeToString([]byte("\x89PNG\x0d\x0a\x1a\x0a0000"))

func summaryOf(t *testing.T, content string) []catalogsummary.Package {
	t.Helper()
	packages, err := catalogsummary.OfFolder(t.Context(), fstest.MapFS{"c.json": {Data: []byte(content)}})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// packageWorld has one package in one catalog.
func packageWorld(t *testing.T, content string) *world {
	t.Helper()
	w := newWorld()
	w.catalogs.Items, w.content = []*ocv1.ClusterCatalog{served("c")}, content
	w.packages = summaryOf(t, content)
	w.pkg = &resolve.Package{
		Name:     "p",
		Channels: []resolve.Channel{{Name: "stable", Entries: []resolve.Entry{{Name: "p.v1.0.0"}}}},
		Bundles: []resolve.Bundle{{
			Name: "p.v1.0.0", Version: "1.0.0",
			Facts: &resolve.Facts{MinKubeVersion: "1.99.0"},
		}},
		Deprecations: []resolve.Deprecation{{Scope: resolve.BundleScope, Name: "p.v1.0.0", Message: "use 2.0.0"}, {Scope: resolve.PackageScope, Message: "use q"}},
	}
	w.explained = Explanation{Lines: []string{"chosen"}, Cluster: &requirement.Cluster{Kubernetes: "1.36.0"}}
	return w
}

// A package has its description, channels, versions with what speaks against them here, and
// a form that makes a manifest.
func TestThePageOfAPackage(t *testing.T) {
	t.Parallel()
	w := packageWorld(t, fmt.Sprintf(samplePackage, pixel))
	w.rights = []permission.Document{{Object: map[string]string{"kind": "ServiceAccount", "name": "a"}}, {Object: map[string]string{"kind": "ClusterRole"}}}
	body := w.get(t, "/packages")
	for _, want := range []string{"The P", "P Inc", `src="/packages/c/p/icon"`, "What p does.", "1 of 1"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if body := w.get(t, "/packages?q=nothing"); strings.Contains(body, "The P") || !strings.Contains(body, "0 of 1") {
		t.Errorf("filtered\n%s", body)
	}
	body = w.get(t, "/packages/c/p")
	for _, want := range []string{
		"<strong>bold</strong>", `href="https://p.test"`, `href="https://p.test/docs"`, "AllNamespaces", "<dd>2</dd>", "use q", "use 2.0.0", "default",
		"minKubeVersion 1.99.0", "Not here", `value="p"`, `value="p-installer"`, "chosen",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	for _, unwanted := range []string{"javascript:", "<img src=\"https", "OwnNamespace", `id="made"`} {
		if strings.Contains(body, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, body)
		}
	}
	query := "?make=1&name=my-p&namespace=here&account=a&version=1.x&channel=stable&manual=1&watch=there&config=replicas%3A+2&rights=1"
	body = w.get(t, "/packages/c/p"+query)
	code, file, header := w.ask(t, "/packages/c/p/manifest"+query)
	if code != http.StatusOK || header.Get("Content-Disposition") != `attachment; filename="my-p.yaml"` {
		t.Errorf("code %d, %v", code, header)
	}
	if diff := cmp.Diff(wantManifest, file); diff != "" || !strings.Contains(body, "watchNamespace: there") || !strings.Contains(body, "download") {
		t.Errorf("(-want +got)\n%s\n%s", diff, body)
	}
	w.err = nil
	w.rights = nil
	if _, file, _ := w.ask(t, "/packages/c/p/manifest?make=1&name=p&namespace=p&account=a"); !strings.Contains(file, "# The ServiceAccount needs rights") {
		t.Errorf("got\n%s", file)
	}
}

const wantManifest = `---
apiVersion: v1
kind: Namespace
metadata:
  name: here
---
kind: ServiceAccount
name: a
---
kind: ClusterRole
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata:
  name: my-p
spec:
  config:
    configType: Inline
    inline:
      replicas: 2
      watchNamespace: there
  namespace: here
  serviceAccount:
    name: a
  source:
    catalog:
      channels:
      - stable
      packageName: p
      selector:
        matchLabels:
          olm.operatorframework.io/metadata.name: c
      upgradeApproval: Manual
      version: 1.x
    sourceType: Catalog
`

// A form that makes no sense makes no manifest, and says why.
func TestFormsAreChecked(t *testing.T) {
	t.Parallel()
	w := packageWorld(t, fmt.Sprintf(samplePackage, pixel))
	for query, want := range map[string]string{
		"name=Not_One&namespace=n&account=a":                                                   "&#34;Not_One&#34; cannot be the name of a ClusterExtension",
		"name=p&namespace=a.b&account=a":                                                       "&#34;a.b&#34; cannot be the name of a namespace",
		"name=p&namespace=n&account=":                                                          "&#34;&#34; cannot be the name of a ServiceAccount",
		"name=p&namespace=n&account=a&version=newest":                                          "the version: ",
		"name=p&namespace=n&account=a&watch=A":                                                 "the namespace to watch &#34;A&#34; cannot be one",
		"name=p&namespace=n&account=a&watch=there":                                             "the operator cannot watch the namespace",
		"name=p&namespace=n&account=a&config=%5B1":                                             "the configuration: ",
		"name=p&namespace=n&account=a&config=" + strings.Repeat("x", maxFieldBytes+1):          "the configuration is larger than 32768 bytes",
		"name=p&namespace=n&account=a&config=a%3A+1%0Aa%3A+2":                                  "the configuration: ",
		"name=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E&namespace=n&account=a&version=%3Cb%3E": "cannot be the name",
	} {
		body := w.get(t, "/packages/c/p?make=1&"+query)
		if !strings.Contains(body, want) || strings.Contains(body, `id="made"`) || strings.Contains(body, "<script>alert") {
			t.Errorf("%.100s: want %q in\n%.4000s", query, want, body)
		}
		if code, _, _ := w.ask(t, "/packages/c/p/manifest?make=1&"+query); code != http.StatusBadRequest {
			t.Errorf("%.100s: code %d", query, code)
		}
	}
	w.err = &bundle.ConfigError{Problems: []string{"unknown field"}}
	if manifest, _, err := (&console{Config: Config{Asking: w}}).manifestFor(t.Context(), form{Name: "p", Rights: true}, "c"); err == nil {
		t.Errorf("got\n%s", manifest)
	}
	w.err = errors.New("the image cannot be pulled")
	manifest, unknown, err := (&console{Config: Config{Asking: w}}).manifestFor(t.Context(), form{Name: "p", Rights: true}, "c")
	if err != nil || !strings.Contains(manifest, "# The ServiceAccount needs rights") || len(unknown) != 1 {
		t.Errorf("got %q, %v\n%s", unknown, err, manifest)
	}
}

// A catalog is shown with what it serves, since when, and what is wrong with it.
func TestThePageOfCatalogs(t *testing.T) {
	t.Parallel()
	w := newWorld()
	broken := served("broken")
	broken.Status.Conditions = []metav1.Condition{
		{Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: "Retrying", Message: "no such image"},
		{Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: "Retrying"},
	}
	broken.Status.URLs = nil
	good := served("good")
	good.Status.Conditions = append(good.Status.Conditions, metav1.Condition{
		Type: ocv1.TypeVerified, Status: metav1.ConditionTrue, Reason: ocv1.ReasonSigned, Message: "signed by the key",
	})
	stale := served("stale")
	stale.Status.Conditions = append(stale.Status.Conditions,
		metav1.Condition{Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: "Retrying", Message: "no good"},
		metav1.Condition{Type: ocv1.TypeDegraded, Status: metav1.ConditionTrue, Reason: ocv1.ReasonContentInvalid, Message: "no good"})
	w.catalogs.Items = []*ocv1.ClusterCatalog{good, broken, stale}
	w.packages = []catalogsummary.Package{{Name: "a"}, {Name: "b"}}
	body := w.get(t, "/catalogs")
	for _, want := range []string{
		"yes, for 2 h", "sha256:0123", "registry.test/good:latest", `data-label="Packages">2<`, `data-label="Packages">—<`, "no such image",
		`data-label="Health"><span class="health bad">Degraded, ContentInvalid</span><span class="minor">no good</span>`, // F7
		`data-label="Signatures"><span class="health good">Signed</span><span class="minor">signed by the key</span><`, `data-label="Signatures">—<`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
}

// slow answers nothing until it is told to.
type slow struct {
	*world

	release chan struct{}
}

func (s slow) Explain(context.Context, *ocv1.ClusterExtension) (Explanation, error) {
	<-s.release
	return Explanation{Lines: []string{"explained at last"}}, nil
}

// The top of a page is sent before what takes time is known.
func TestThePageBeginsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(installed("x", "1.0.0"))
	s := slow{world: w, release: make(chan struct{})}
	reader, writer := io.Pipe()
	handler, err := New(Config{Host: testHost, Token: testToken, Once: testOnce, Live: w, Asking: s, Offers: w, Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	r := admitted(t, handler, request(t, "/extensions/x"))
	go func() {
		defer writer.Close()
		handler.ServeHTTP(piped{ResponseRecorder: httptest.NewRecorder(), to: writer}, r)
	}()
	top := make([]byte, 64<<10)
	var sent string
	for !strings.Contains(sent, "<h1>x</h1>") {
		n, err := reader.Read(top)
		if err != nil {
			t.Fatal(err)
		}
		sent += string(top[:n])
	}
	close(s.release)
	rest, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(rest), "explained at last") || !strings.HasSuffix(strings.TrimSpace(string(rest)), "</html>") {
		t.Errorf("%v\n%s", err, rest)
	}
}

// piped hands on what is written at once.
type piped struct {
	*httptest.ResponseRecorder

	to io.Writer
}

func (p piped) Write(data []byte) (int, error) { return p.to.Write(data) }

// TestPagesReportAMissingController (F9): every page does, and none while a controller is running.
func TestPagesReportAMissingController(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, page := range []string{"/extensions", "/packages", "/catalogs", "/nowhere"} {
		w.absence = ""
		if _, body, _ := w.ask(t, page); strings.Contains(body, "No controller is running") {
			t.Errorf("%s reports that no controller is running", page)
		}
		w.absence = `lease "x" was last renewed 5m ago`
		_, body, _ := w.ask(t, page)
		for _, want := range []string{"<h2>No controller is running</h2>", "was last renewed 5m ago"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing in\n%s", page, want, body)
			}
		}
	}
}
