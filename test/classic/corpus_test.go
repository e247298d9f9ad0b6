package classic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	inplace "github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/migration"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/podserver"
)

var (
	withCorpus = flag.Bool("corpus", false, "have classic OLM install every package of the corpus, and move it")
	only       = flag.String("packages", "", "the packages to install, separated by commas; all if empty")
)

const (
	corpusCatalog = "corpus"

	// watched is at the end of the name of another namespace than that of the operator.
	watched = "-watched"

	// together is how many packages are installed and moved at a time.
	together = 14

	// installing is how long classic OLM may take for all of these.
	installing = 2 * time.Minute

	// watching is how long after a move, with classic OLM running again, deletions count.
	watching = 15 * time.Second
)

// alone are packages that are installed without others beside them, with the reason.
var alone = map[string]string{
	"busybox":                              "classic OLM installs busybox-dependency with it",
	"cert-manager":                         "nothing issues the certificates that others would then ask it for",
	podWebhooks:                            "what it is asked about are the pods of all others",
	"rabbitmq-messaging-topology-operator": "classic OLM installs rabbitmq-cluster-operator with it",
}

// podWebhooks is a package with a webhook for pods, its own included, without whose answer none
// is made.
const podWebhooks = "telegraf-operator"

// instead are bundles that classic OLM installs of packages whose heads require what no catalog
// here has.
var instead = map[string]string{"eclipse-che": "eclipse-che.v7.40.1"}

// deletions has an audit log say who deletes what, the components of the cluster included.
const deletions = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [delete, deletecollection]}
- {level: None}
`

// TestCorpus has classic OLM install every package of the corpus, by the head of its default
// channel, and moves it. What it does not install, and what a check refuses, is in
// exceptions.md with the reason; everything else has to move in place, without anybody deleting
// anything that was installed.
//
//nolint:paralleltest,tparallel // one batch after the other
func TestCorpus(t *testing.T) {
	t.Parallel()
	if !*withCorpus {
		t.Skip("takes half an hour: make test-long SUITE=classic-corpus runs it")
	}
	corpus := testkit.Corpus(t)
	s := &moving{
		site:       newSite(t, "", func(options *environment.Options) { options.AuditPolicy = deletions }),
		exceptions: readExceptions(t), moved: map[string]bool{}, refused: map[string]string{},
	}
	s.prepare(t, corpus)
	s.answer(t)
	wanted := packagesOf(t, corpus)
	for _, batch := range batches(wanted) {
		t.Run(strings.Join(batch, " "), func(t *testing.T) { s.move(t, batch) })
	}
	s.conclude(t, wanted)
}

// moving is a site on which packages are installed, moved and uninstalled.
type moving struct {
	*site

	catalog    classic.Catalog
	config     *declcfg.DeclarativeConfig // of the catalog
	baseline   classic.Objects
	exceptions map[string]exception

	mu      sync.Mutex
	moved   map[string]bool
	refused map[string]string // by package, in the words of who has refused it
}

func packagesOf(t *testing.T, corpus string) []string {
	t.Helper()
	if *only != "" {
		return strings.Split(*only, ",")
	}
	return packagesIn(t, corpus)
}

func batches(packages []string) [][]string {
	var found [][]string
	var beside []string
	for _, pkg := range packages {
		if alone[pkg] != "" {
			found = append(found, []string{pkg})
		} else {
			beside = append(beside, pkg)
		}
	}
	return append(slices.Collect(slices.Chunk(beside, together)), found...)
}

// prepare brings the kinds that real operators take for granted, nodes that all of them run on,
// the catalog, and both that install from it.
func (s *moving) prepare(t *testing.T, corpus string) {
	t.Helper()
	kinds, err := os.ReadFile(filepath.Join(corpus, "stub-crds.yaml"))
	must(t, err)
	_, err = s.KubectlOutput(t.Context(), string(kinds), "apply", "--server-side", "-f", "-")
	must(t, err)
	_, err = s.KubectlOutput(t.Context(), string(kinds), "wait", "--for=condition=Established", "--timeout=60s", "-f", "-")
	must(t, err)
	must(t, s.Kubectl(t.Context(), "label", "nodes", "--all", "node-role.kubernetes.io/master=", "node-role.kubernetes.io/control-plane=", "node-role.kubernetes.io/worker="))

	s.catalog, err = classic.CorpusCatalog(corpus, packagesIn(t, corpus)...)
	must(t, err)
	s.config, err = declcfg.LoadFS(t.Context(), s.catalog.Files)
	must(t, err)
	must(t, s.Serve(t.Context(), corpusCatalog, s.catalog))
	s.startController(t)
	s.serve(t, corpusCatalog, s.catalog)
	within(t, s.Start)
	within(t, func(ctx context.Context) error { return s.AwaitServing(ctx, corpusCatalog) })
	s.baseline = s.objects(t)
}

// answer has a server behind the Service of [podWebhooks] that admits everything. Nobody answers
// for the webhooks of other packages, which are about custom resources that there are none of.
func (s *moving) answer(t *testing.T) {
	t.Helper()
	server, err := podserver.Start(http.HandlerFunc(admitAll))
	must(t, err)
	t.Cleanup(server.Close)
	const service = podWebhooks + "-service"
	s.services.Lead(client.ObjectKey{Namespace: podWebhooks, Name: service}, server.Address())
	go server.Follow(t.Context(), s.Environment.Admin, client.ObjectKey{Namespace: podWebhooks, Name: service + "-cert"}, volumeDelay)
}

func admitAll(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		return // who has asked is gone
	}
}

func packagesIn(t *testing.T, corpus string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(corpus, "catalog"))
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// move installs packages, moves all that can be, looks at what has become of them, and removes
// everything again.
func (s *moving) move(t *testing.T, packages []string) {
	defer s.reset(t)
	installed := s.install(t, packages)
	eligible := s.check(t, installed)
	if len(eligible) == 0 {
		return
	}
	before := s.objects(t).Since(s.baseline)
	maps.DeleteFunc(before, s.remaining(t, packages, eligible).has)
	began := time.Now()
	args := []string{"migrate", "run", "--yes", "--timeout=3m", "--backup", t.TempDir()}
	output, err := s.CommandOutput(t.Context(), append(args, eligible...)...)
	if known, isKnown := s.exceptions[packages[0]]; isKnown && known.by == byMove {
		s.turnsBack(t, packages, err)
		return
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	time.Sleep(watching)
	if err := s.objects(t).Moved(before); err != nil {
		t.Error(err)
	}
	s.nothingDeleted(t, began, before)
	s.areThere(t, eligible)
}

// turnsBack takes back the move of a package that has failed, as exceptions.md says.
func (s *moving) turnsBack(t *testing.T, packages []string, failed error) {
	t.Helper()
	if failed == nil || len(packages) > 1 {
		t.Errorf("%q was to be moved alone, and in vain: %v", packages, failed)
		return
	}
	s.refuse(t, packages[0], byMove, failed.Error())
	if output, err := s.CommandOutput(t.Context(), "migrate", "rollback", packages[0], "--yes"); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if _, err := s.Succeeded(t.Context(), client.ObjectKey{Namespace: packages[0], Name: packages[0]}); err != nil {
		t.Errorf("%s is not back: %v", packages[0], err)
	}
}

// install has classic OLM install packages, each in a namespace of its name, and gives those
// that it has.
func (s *moving) install(t *testing.T, packages []string) []string {
	t.Helper()
	var group errgroup.Group
	var installed []string
	for _, pkg := range packages {
		must(t, s.Subscribe(t.Context(), classic.Group(pkg, s.targets(t, pkg)), classic.Subscription(pkg, corpusCatalog, pkg)))
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), installing)
			defer cancel()
			if err := s.awaitInstalled(ctx, pkg); err != nil {
				s.refuse(t, pkg, byClassic, err.Error())
				return nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			installed = append(installed, pkg)
			return nil
		})
	}
	_ = group.Wait() // what is not installed is noted
	slices.Sort(installed)
	return installed
}

// awaitInstalled waits as long as there may be something to come: what is known not to be
// installed is known by what classic OLM says of it.
func (s *moving) awaitInstalled(ctx context.Context, pkg string) error {
	known, isKnown := s.exceptions[pkg]
	for {
		_, err := s.Succeeded(ctx, client.ObjectKey{Namespace: pkg, Name: pkg})
		if err == nil || isKnown && known.by == byClassic && strings.Contains(err.Error(), known.words) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// targets are those of the OperatorGroup for a package, by the widest mode that it supports.
func (s *moving) targets(t *testing.T, pkg string) []string {
	t.Helper()
	modes := map[v1alpha1.InstallModeType]bool{}
	for _, object := range s.manifests(t, pkg) {
		list, _, err := unstructured.NestedSlice(object.Object, "spec", "installModes")
		if object.GetKind() != v1alpha1.ClusterServiceVersionKind || err != nil {
			continue
		}
		for _, item := range list {
			mode, _ := item.(map[string]any)
			kind, _ := mode["type"].(string)
			modes[v1alpha1.InstallModeType(kind)] = mode["supported"] == true
		}
	}
	other := pkg + watched
	switch {
	case modes[v1alpha1.InstallModeTypeAllNamespaces]:
		return nil
	case modes[v1alpha1.InstallModeTypeOwnNamespace]:
		return []string{pkg}
	case modes[v1alpha1.InstallModeTypeSingleNamespace]:
		return []string{other}
	default:
		return []string{pkg, other}
	}
}

// head is the bundle that classic OLM installs of a package: the one at the end of its default
// channel, unless that cannot be installed.
func (s *moving) head(t *testing.T, pkg string) fs.FS {
	t.Helper()
	i := slices.IndexFunc(s.config.Packages, func(p declcfg.Package) bool { return p.Name == pkg })
	if i < 0 {
		t.Fatalf("there is no package %q", pkg)
	}
	for _, channel := range s.config.Channels {
		if channel.Package != pkg || channel.Name != s.config.Packages[i].DefaultChannel {
			continue
		}
		followed := map[string]bool{}
		for _, entry := range channel.Entries {
			for _, name := range append(entry.Skips, entry.Replaces) {
				followed[name] = true
			}
		}
		for _, bundle := range s.config.Bundles {
			isIn := slices.ContainsFunc(channel.Entries, func(e declcfg.ChannelEntry) bool { return e.Name == bundle.Name })
			isHead := isIn && !followed[bundle.Name]
			if name, isOther := instead[pkg]; isOther {
				isHead = bundle.Name == name
			}
			if bundle.Package == pkg && isHead {
				return s.catalog.Bundles[bundle.Image]
			}
		}
	}
	t.Fatalf("package %q has no head", pkg)
	return nil
}

// manifests are those of the head of a package.
func (s *moving) manifests(t *testing.T, pkg string) []*unstructured.Unstructured {
	t.Helper()
	files := s.head(t, pkg)
	names, err := fs.Glob(files, "manifests/*")
	must(t, err)
	var found []*unstructured.Unstructured
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		must(t, err)
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)+1)
		for {
			object := &unstructured.Unstructured{}
			err := documents.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if object.Object != nil {
				found = append(found, object)
			}
		}
	}
	return found
}

// check gives the Subscriptions that a check lets move, as arguments: those to the packages that
// are installed, and those that classic OLM has made for what they require.
func (s *moving) check(t *testing.T, installed []string) []string {
	t.Helper()
	subscriptions := &v1alpha1.SubscriptionList{}
	must(t, s.OLM.Admin.List(t.Context(), subscriptions))
	args := []string{"migrate", "check", "-o", "json"}
	for i := range subscriptions.Items {
		if one := &subscriptions.Items[i]; slices.Contains(installed, one.Namespace) {
			args = append(args, one.Namespace+"/"+one.Name)
		}
	}
	output, checkErr := s.CommandOutput(t.Context(), args...)
	var report migration.Report
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		t.Fatal(checkErr, err)
	}
	var eligible []string
	for _, one := range report.Operators {
		if one.State == inplace.Eligible {
			eligible = append(eligible, one.Subscription.Namespace+"/"+one.Subscription.Name)
			continue
		}
		var texts []string
		for _, finding := range one.Findings {
			if finding.Severity == inplace.Blocks {
				texts = append(texts, finding.Check+": "+finding.Text)
			}
		}
		s.refuse(t, one.Package, byCheck, strings.Join(texts, "; "))
	}
	return eligible
}

// remaining are packages that do not move: classic OLM has installed them, or a part of them.
type remaining struct {
	namespaces map[string]bool
	names      map[string]bool // of what they ship
	services   []string        // of what the API server calls, with a hyphen at the end
}

func (s *moving) remaining(t *testing.T, packages, eligible []string) remaining {
	t.Helper()
	r := remaining{namespaces: map[string]bool{classic.Namespace: true, environment.SystemNamespace: true}, names: map[string]bool{}}
	for _, pkg := range packages {
		if slices.ContainsFunc(eligible, func(one string) bool { return strings.HasPrefix(one, pkg+"/") }) {
			continue
		}
		r.namespaces[pkg], r.namespaces[pkg+watched] = true, true
		for _, object := range s.manifests(t, pkg) {
			r.names[object.GetName()] = true
			deployments, _, err := unstructured.NestedSlice(object.Object, "spec", "install", "spec", "deployments")
			must(t, err)
			for _, item := range deployments {
				deployment, _ := item.(map[string]any)
				r.services = append(r.services, fmt.Sprint(deployment["name"], "-service-"))
			}
		}
	}
	return r
}

// has says that an object is of one of them, or of who installs operators.
func (r remaining) has(name classic.Name, object metav1.ObjectMeta) bool {
	if r.namespaces[name.Namespace] || slices.ContainsFunc(r.services, func(service string) bool { return strings.HasPrefix(name.Name, service) }) {
		return true
	}
	if name.Namespace != "" {
		return false
	}
	definition, _, _ := strings.Cut(name.Name, "-v") // its roles are called after it
	for label := range object.Labels {
		if of, isComponent := strings.CutPrefix(label, "operators.coreos.com/"); isComponent && r.namespaces[of[strings.LastIndex(of, ".")+1:]] {
			return true
		}
	}
	return r.namespaces[object.Labels["olm.owner.namespace"]] || r.names[object.Labels["olm.owner"]] ||
		r.names[name.Name] || r.names[definition] || r.namespaces[name.Name]
}

// nothingDeleted wants nobody to have deleted anything since a time but what a move is meant to.
func (s *moving) nothingDeleted(t *testing.T, since time.Time, before classic.Objects) {
	t.Helper()
	requests, err := environment.RequestsOf(s.audit)
	must(t, err)
	for _, request := range requests {
		ref := request.ObjectRef
		if ref == nil || request.ResponseStatus.Code >= http.StatusMultipleChoices || request.IsDryRun() || request.StageTimestamp.Before(since) {
			continue
		}
		for name, object := range before {
			isOne := name.GroupResource() == schema.GroupResource{Group: ref.APIGroup, Resource: ref.Resource} &&
				name.Namespace == ref.Namespace && (name.Name == ref.Name || request.Verb == "deletecollection")
			if isOne && !classic.IsDropped(name, object) {
				t.Errorf("%s of %s by %s, which was installed", request.Verb, name, request.User.Username)
			}
		}
	}
}

// areThere wants an extension for each Subscription that has moved.
func (s *moving) areThere(t *testing.T, eligible []string) {
	t.Helper()
	for _, one := range eligible {
		pkg, name, _ := strings.Cut(one, "/")
		ext := &ocv1.ClusterExtension{}
		if err := s.Environment.Admin.Get(t.Context(), client.ObjectKey{Name: name}, ext); err != nil {
			t.Error(err)
			continue
		}
		isInstalled := meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeInstalled) && meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeReady)
		if !isInstalled || ext.Spec.Suspend || ext.Spec.Source.Catalog.Version != "" {
			t.Errorf("%s: %+v", name, ext.Status.Conditions)
			continue
		}
		if name == pkg {
			s.moved[pkg] = true
		}
		err := s.OLM.Admin.Get(t.Context(), client.ObjectKey{Namespace: pkg, Name: name}, &v1alpha1.Subscription{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("Subscription %s is still there: %v", one, err)
		}
	}
}

// refuse notes that a package does not move, which the table has to say.
func (s *moving) refuse(t *testing.T, pkg string, by refusing, words string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[pkg] = words
	if known := s.exceptions[pkg]; known.by != by || !strings.Contains(words, known.words) {
		t.Errorf("%s is refused by %s, and exceptions.md does not say so: %s", pkg, by, words)
	}
}

func (s *moving) objects(t *testing.T) classic.Objects {
	t.Helper()
	objects, err := classic.ReadObjects(t.Context(), s.Cluster.RESTConfig())
	must(t, err)
	return objects
}

// reset removes everything that was not there at the beginning: extensions, what classic OLM
// still has, and what neither removes.
func (s *moving) reset(t *testing.T) {
	t.Helper()
	must(t, s.Kubectl(t.Context(), "delete", "clusterextensions", "--all", "--timeout=2m"))
	must(t, s.Kubectl(t.Context(), "delete", "subscriptions.operators.coreos.com", "--all", "--all-namespaces", "--timeout=1m"))
	must(t, s.Kubectl(t.Context(), "delete", "csv", "--all-namespaces", "--selector=!olm.copiedFrom", "--timeout=2m"))
	deleter, err := dynamic.NewForConfig(s.Cluster.RESTConfig())
	must(t, err)
	testkit.Eventually(t, patience, "everything to be removed", func(ctx context.Context) error {
		left := s.objects(t).Since(s.baseline)
		maps.DeleteFunc(left, func(name classic.Name, _ metav1.ObjectMeta) bool {
			return name.Namespace == environment.SystemNamespace || name.Namespace == classic.Namespace && name.Resource != "clusterserviceversions"
		})
		var errs []error
		for name, object := range left {
			errs = append(errs, fmt.Errorf("%s is still there", name))
			if object.DeletionTimestamp == nil {
				err := deleter.Resource(name.GroupVersionResource).Namespace(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{})
				errs = append(errs, client.IgnoreNotFound(err))
			}
		}
		return errors.Join(errs...)
	})
}

// conclude holds the table against what has happened, and says how many there were.
func (s *moving) conclude(t *testing.T, packages []string) {
	t.Helper()
	byReason := map[refusing]int{}
	for _, pkg := range packages {
		known, isKnown := s.exceptions[pkg]
		switch {
		case isKnown && s.moved[pkg]:
			t.Errorf("%s has moved, although exceptions.md says: %s", pkg, known.reason)
		case isKnown:
			byReason[known.by]++
		case !s.moved[pkg]:
			t.Errorf("%s has not moved: %s", pkg, s.refused[pkg])
		}
	}
	t.Logf("%d packages: %d have moved; %d are not installed by classic OLM, %d are refused by the check, %d fail here",
		len(packages), len(s.moved), byReason[byClassic], byReason[byCheck], byReason[byMove])
}

// refusing is who refuses a package.
type refusing string

const (
	byClassic refusing = "classic OLM"
	byCheck   refusing = "check"
	byMove    refusing = "the move"
)

// exception is a row of exceptions.md.
type exception struct {
	by     refusing
	words  string // part of what is said
	reason string
}

func readExceptions(t *testing.T) map[string]exception {
	t.Helper()
	text, err := os.ReadFile("exceptions.md")
	must(t, err)
	found := map[string]exception{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if by := refusing(cells[min(1, len(cells)-1)]); len(cells) == 4 && (by == byClassic || by == byCheck || by == byMove) {
			found[cells[0]] = exception{by: by, words: strings.Trim(cells[2], "`"), reason: cells[3]}
		}
	}
	return found
}
