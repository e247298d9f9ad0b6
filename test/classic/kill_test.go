package classic_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
	"github.com/clusterextensions/operator-controller/test/operator"
)

var kills = flag.String("kills", "", "writes at which to kill the tool: \"all\" or \"few\"")

// TestKilledLive kills the tool at its writes while classic OLM runs.
func TestKilledLive(t *testing.T) {
	t.Parallel()
	needKills(t)
	killed(t, "live", []string{"narrow-a", "narrow-b", "narrow-c", "narrow-d"}, []string{"hooked-a", "hooked-b"})
}

// TestKilledQuiet does so while the tool stops classic OLM, and starts it again. There is one operator, as it
// is the same classic OLM for all of them.
func TestKilledQuiet(t *testing.T) {
	t.Parallel()
	needKills(t)
	killed(t, "quiet", []string{"narrow-q"}, nil)
}

func needKills(t *testing.T) {
	t.Helper()
	switch *kills {
	case "all", "few":
	case "":
		t.Skip("takes an hour: make test-long SUITE=kills runs it")
	default:
		t.Fatalf("-kills=%q: want all or few", *kills)
	}
}

func killed(t *testing.T, mode string, narrow, hooked []string) {
	t.Helper()
	s := newSite(t, "")
	within(t, s.Start)
	var bundles []fs.FS
	for _, name := range narrow {
		bundle, err := operator.Variant{Name: name, Image: classic.Registry + "/" + name + "-program:v1"}.Bundle("1.0.0")
		must(t, err)
		bundles = append(bundles, bundle)
	}
	for _, name := range hooked {
		bundles = append(bundles, testkit.Operator{Package: name, Version: "1.0.0"}.BundleWithWebhooks())
	}
	catalog, err := classic.NewCatalog(t.Context(), bundles...)
	must(t, err)
	within(t, func(ctx context.Context) error { return s.Serve(ctx, classic.SampleCatalog, catalog) })
	s.startController(t)
	s.serve(t, classic.SampleCatalog, catalog)
	kubeconfig := s.mover(t)

	var fleets [][]*mortal
	for _, names := range [][]string{narrow, hooked} {
		var fleet []*mortal
		for _, name := range names {
			m := &mortal{
				site: s, name: name, mode: mode, kubeconfig: kubeconfig, half: 9, rollbackBegins: 1,
				resource: "widgets." + name + ".clusterextensions.dev", targets: []string{name},
			}
			if slices.Contains(hooked, name) {
				m.resource, m.targets = "things."+name+".test", nil
			}
			if mode == "quiet" { // before that, classic OLM is stopped, and started
				m.half, m.rollbackBegins = 11, 3
			}
			within(t, func(ctx context.Context) error {
				return m.Subscribe(ctx, classic.Group(name, m.targets), classic.Subscription(name, classic.SampleCatalog, name, inChannel))
			})
			fleet = append(fleet, m)
		}
		fleets = append(fleets, fleet)
	}
	for _, m := range slices.Concat(fleets...) {
		within(t, m.settleIn)
	}
	var all sync.WaitGroup
	for _, fleet := range fleets {
		points := &points{next: map[int]int{}, ended: map[int]bool{}}
		for _, m := range fleet {
			all.Go(func() { m.live(t, points) })
		}
	}
	all.Wait()
}

// mover is a kubeconfig of who may do everything, by a token, as proxies pass no certificates.
func (s *site) mover(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mover"}}
	must(t, s.OLM.Admin.Create(t.Context(), account), s.OLM.Admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mover"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
	kubeconfig, err := s.Cluster.KubeconfigForServiceAccount(t.Context(), account.Namespace, account.Name)
	must(t, err)
	return kubeconfig
}

// checksBackup names the commands before whose first write the backup is checked.
const checksBackup = "run, cleanup"

// fates are what becomes of an operator: in each the tool is killed once, when its n-th write is done, and then it is
// called again.
var fates = []struct {
	name   string
	suffer func(m *mortal, ctx context.Context, n int) (death, error)
}{
	{"run, rollback", func(m *mortal, ctx context.Context, n int) (death, error) {
		died, err := m.die(ctx, n, m.run())
		return died, errors.Join(err, m.back(ctx))
	}},
	{checksBackup, func(m *mortal, ctx context.Context, n int) (death, error) {
		died, err := m.die(ctx, n, m.run())
		if err == nil && n == 0 {
			err = m.hasBackup() // before anything else is written
		}
		return died, errors.Join(err, m.on(ctx, n > 0), m.back(ctx))
	}},
	{"rollback", func(m *mortal, ctx context.Context, n int) (death, error) {
		if err := m.migrate(ctx, m.run()); err != nil {
			return death{}, err
		}
		died, err := m.die(ctx, n, m.rollback())
		return died, errors.Join(err, m.back(ctx))
	}},
	{"cleanup", func(m *mortal, ctx context.Context, n int) (death, error) {
		if _, err := m.die(ctx, 1, m.run()); err != nil {
			return death{}, err
		}
		died, err := m.die(ctx, n, m.cleanup())
		return died, errors.Join(err, m.on(ctx, true), m.back(ctx))
	}},
	{"rollback of half a move", func(m *mortal, ctx context.Context, n int) (death, error) {
		if _, err := m.die(ctx, m.half, m.run()); err != nil {
			return death{}, err
		}
		died, err := m.die(ctx, n, m.rollback())
		return died, errors.Join(err, m.back(ctx))
	}},
	{"rollback given up, cleanup", func(m *mortal, ctx context.Context, _ int) (death, error) {
		if _, err := m.die(ctx, m.half, m.run()); err != nil {
			return death{}, err
		}
		// Nothing is deleted yet.
		if _, err := m.die(ctx, m.rollbackBegins, m.rollback()); err != nil {
			return death{}, err
		}
		return death{isOver: true}, errors.Join(m.on(ctx, true), m.back(ctx))
	}},
}

// points are the writes at which operators of one shape have still to see the tool killed, by fate.
type points struct {
	mu    sync.Mutex
	next  map[int]int
	ended map[int]bool
}

func (p *points) take(fate int) (n int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.next[fate]
	more = !p.ended[fate]
	p.next[fate] = n + 1
	if *kills == "few" {
		if n == 0 && fates[fate].name != checksBackup {
			n = 1 + 2*fate // early and late writes
		}
		p.ended[fate], p.next[fate] = n > 0, 1+2*fate
	}
	return n, more
}

func (p *points) end(fate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[fate] = true
}

// mortal is an operator that moves to and fro.
type mortal struct {
	*site

	name       string
	mode       string
	kubeconfig string
	resource   string // of its API
	targets    []string
	// half is the write of a run that deletes the ClusterServiceVersion, and rollbackBegins that of a
	// rollback after it that says of the extension that it is taken back.
	half, rollbackBegins int

	// before and moved are what there is of it while classic OLM has it, and after a move that nobody has
	// interrupted; uids are of what is the same in both.
	before, moved inventory
	uids          []types.UID
	backup        []string
}

func (m *mortal) live(t *testing.T, points *points) {
	t.Helper()
	ctx := t.Context()
	if err := m.moveOnce(ctx); err != nil {
		t.Errorf("%s, which nobody interrupts: %v", m.name, err)
		return
	}
	for i, fate := range fates {
		for n, more := points.take(i); more; n, more = points.take(i) {
			began := time.Now()
			died, err := fate.suffer(m, ctx, n)
			if died.isOver {
				points.end(i)
			}
			t.Logf("%s: %s, killed after write %d, %s: %s", m.name, fate.name, n, died.at, time.Since(began).Round(time.Second/10))
			if err == nil {
				continue
			}
			t.Errorf("%s: %s, killed after write %d, %s: %v", m.name, fate.name, n, died.at, err)
			if m.back(ctx) != nil {
				return
			}
		}
	}
}

// back takes the operator back, twice.
func (m *mortal) back(ctx context.Context) error {
	if err := m.migrate(ctx, m.rollback()); err != nil {
		return err
	}
	if err := m.isClassic(ctx); err != nil {
		return fmt.Errorf("after rollback: %w", err)
	}
	if err := m.migrate(ctx, m.rollback()); err != nil {
		return fmt.Errorf("rollback once more: %w", err)
	}
	if err := m.isClassic(ctx); err != nil {
		return fmt.Errorf("after rollback once more: %w", err)
	}
	return m.deleteAccount(ctx)
}

// on completes the move, twice.
func (m *mortal) on(ctx context.Context, begun bool) error {
	complete := m.cleanup()
	if !begun {
		complete = m.run()
	}
	if err := m.migrate(ctx, complete); err != nil {
		return err
	}
	if err := m.isMoved(ctx); err != nil {
		return fmt.Errorf("after %s: %w", complete[0], err)
	}
	if err := m.migrate(ctx, m.cleanup()); err != nil {
		return fmt.Errorf("cleanup once more: %w", err)
	}
	if err := m.isMoved(ctx); err != nil {
		return fmt.Errorf("after cleanup once more: %w", err)
	}
	return nil
}

func (m *mortal) folder() string { return filepath.Join(m.logs, "backup-"+m.name) }

func (m *mortal) run() []string {
	return []string{"run", m.name + "/" + m.name, "--yes", "--mode", m.mode, "--backup", m.folder(), "--timeout", "4m"}
}

func (m *mortal) rollback() []string {
	return []string{"rollback", m.name, "--yes", "--timeout", "4m"}
}

func (m *mortal) cleanup() []string { return []string{"cleanup", m.name, "--yes", "--timeout", "4m"} }

// settleIn waits until classic OLM has the operator, and has come to rest.
func (m *mortal) settleIn(ctx context.Context) error {
	if _, err := m.AwaitSucceeded(ctx, client.ObjectKey{Namespace: m.name, Name: m.name}); err != nil {
		return err
	}
	const rest = 3 * time.Second
	for {
		before, err := m.take(ctx)
		if err != nil {
			return err
		}
		if slices.Equal(before.names(), m.before.names()) {
			m.uids, err = m.lasting(ctx)
			return err
		}
		m.before = before
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
	}
}

// moveOnce looks at what a move is that nobody interrupts.
func (m *mortal) moveOnce(ctx context.Context) error {
	if err := m.migrate(ctx, m.run()); err != nil {
		return err
	}
	var err error
	if m.moved, err = m.take(ctx); err != nil {
		return err
	}
	if m.backup, err = m.files(); err != nil {
		return err
	}
	return errors.Join(m.isMoved(ctx), m.back(ctx))
}

func inChannel(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = classic.Channel }

func (m *mortal) migrate(ctx context.Context, args []string) error {
	out, err := m.CommandOutput(ctx, append([]string{"migrate"}, args...)...)
	if err != nil {
		return fmt.Errorf("migrate %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// death is where a command was killed.
type death struct {
	at string
	// isOver says that it had come to its end before.
	isOver bool
}

var deaths atomic.Int64

// die runs a command, and kills it when its n-th write is done, before it hears of that.
func (m *mortal) die(ctx context.Context, n int, args []string) (death, error) {
	proxy, err := faultproxy.Start(m.Cluster.RESTConfig())
	if err != nil {
		return death{}, err
	}
	defer proxy.Close()
	base := filepath.Join(m.logs, fmt.Sprintf("%s-%d", m.name, deaths.Add(1)))
	if err := proxy.WriteKubeconfig(base+".kubeconfig", m.kubeconfig); err != nil {
		return death{}, err
	}
	point := faultproxy.Point{Write: n, Answered: true}
	if n == 0 {
		point = faultproxy.Point{Write: 1}
		if err := os.RemoveAll(m.folder()); err != nil {
			return death{}, err
		}
	}
	freeze := faultproxy.NewFreeze(map[string]faultproxy.Point{"": point}, func(faultproxy.Write) string { return "" })
	proxy.Use(freeze.Wrap)
	command := m.Command(ctx, append([]string{"migrate", "--kubeconfig", base + ".kubeconfig"}, args...)...)
	process, err := environment.StartProcess("migrate "+args[0], base+".log", command)
	if err != nil {
		return death{}, err
	}
	for {
		write, isStopped := freeze.Stopped()[""]
		switch {
		case isStopped:
			return death{at: write.String()}, process.Kill()
		case process.Running() != nil:
			err := process.Stop()
			if err != nil {
				text, _ := os.ReadFile(base + ".log")
				err = fmt.Errorf("%w: %s", err, text)
			}
			return death{at: "its end", isOver: true}, err
		case ctx.Err() != nil:
			return death{}, errors.Join(ctx.Err(), process.Kill())
		}
		time.Sleep(time.Millisecond)
	}
}

func (m *mortal) files() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(m.folder(), "*", "*"))
	for i := range files {
		files[i] = random.ReplaceAllString(files[i], "$1-xxxxx.yaml")
	}
	slices.Sort(files)
	return slices.Compact(files), err
}

// random are the names of files of objects that have another name each time.
var random = regexp.MustCompile(`((?:InstallPlan|WebhookConfiguration)_.*)-[a-z0-9]{5}\.yaml$`)

func (m *mortal) hasBackup() error {
	is, err := m.files()
	if diff := cmp.Diff(m.backup, is); diff != "" {
		return errors.Join(err, fmt.Errorf("backup (-want +got):\n%s", diff))
	}
	return err
}

// inventory is what there is of an operator, with its marks.
type inventory map[string]string

func (i inventory) names() []string { return slices.Sorted(maps.Keys(i)) }

// passing are kinds of objects that come and go, or have another name each time.
var passing = []string{"Pod", "ReplicaSet", "Endpoints", "EndpointSlice", "Event", "InstallPlan", "Lease", "ControllerRevision", "PodMetrics"}

var generated = regexp.MustCompile(`-[a-z0-9]{5}$`)

func (m *mortal) take(ctx context.Context) (inventory, error) {
	config := m.Cluster.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	groups, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	reader := metadata.NewForConfigOrDie(config)
	found := inventory{}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") || slices.Contains(passing, kind.Kind) {
				continue
			}
			list, err := reader.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				one := &list.Items[i]
				isCopy := kind.Kind == "ClusterServiceVersion" && !strings.HasPrefix(one.Name, m.name)
				if isCopy || one.Namespace != m.name && !strings.Contains(one.Name, m.name) {
					continue
				}
				name := one.Name
				if strings.HasSuffix(kind.Kind, "WebhookConfiguration") {
					name = generated.ReplaceAllString(name, "-xxxxx")
				}
				owners := []string{}
				for _, owner := range one.OwnerReferences {
					owners = append(owners, owner.Kind)
				}
				found[fmt.Sprintf("%s %s/%s", kind.Kind, one.Namespace, name)] = fmt.Sprintf("labels %q annotations %q owners %q finalizers %q deleted %t",
					slices.Sorted(maps.Keys(one.Labels)), slices.Sorted(maps.Keys(one.Annotations)), owners, one.Finalizers, one.DeletionTimestamp != nil)
			}
		}
	}
	return found, nil
}

// lasting are the UIDs of what stays the same all the time.
func (m *mortal) lasting(ctx context.Context) ([]types.UID, error) {
	deployment := &appsv1.Deployment{}
	if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Namespace: m.name, Name: m.name}, deployment); err != nil {
		return nil, err
	}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Name: m.resource}, definition); err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{}
	if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Namespace: m.name, Name: m.name}, account); err != nil {
		return nil, err
	}
	return []types.UID{deployment.UID, definition.UID, account.UID}, nil
}

// stands wants what nobody may notice a move by.
func (m *mortal) stands(ctx context.Context) error {
	uids, err := m.lasting(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(m.uids, uids); diff != "" {
		return fmt.Errorf("UIDs of Deployment, definition and ServiceAccount (-want +got):\n%s", diff)
	}
	resource, group, _ := strings.Cut(m.resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + m.name + ":" + m.name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "list", Namespace: m.name},
	}}
	if err := m.OLM.Admin.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return errors.New("the operator has no rights")
	}
	for _, name := range []string{classic.OLMDeployment, classic.CatalogDeployment} {
		program := &appsv1.Deployment{}
		if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Namespace: classic.Namespace, Name: name}, program); err != nil {
			return err
		}
		if *program.Spec.Replicas != 1 || program.Annotations["olm.operatorframework.io/migration-replicas"] != "" {
			return fmt.Errorf("%s has %d replicas", name, *program.Spec.Replicas)
		}
	}
	return nil
}

// soon waits for what follows from what the tool has done.
func soon(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (m *mortal) isClassic(ctx context.Context) error {
	return soon(ctx, func(ctx context.Context) error {
		subscription := &operatorsv1alpha1.Subscription{}
		if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Namespace: m.name, Name: m.name}, subscription); err != nil {
			return err
		}
		if subscription.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest || subscription.Spec.InstallPlanApproval != operatorsv1alpha1.ApprovalAutomatic {
			return fmt.Errorf("the Subscription is %q, with approval %q", subscription.Status.State, subscription.Spec.InstallPlanApproval)
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := m.OLM.Admin.Get(ctx, client.ObjectKey{Namespace: m.name, Name: m.name + ".v1.0.0"}, csv); err != nil {
			return err
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Errorf("the ClusterServiceVersion is %q", csv.Status.Phase)
		}
		is, err := m.take(ctx)
		if err != nil {
			return err
		}
		want := m.before.names()
		got := slices.DeleteFunc(is.names(), func(one string) bool {
			return m.before[one] == "" && m.mayStay(one)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("objects (-want +got):\n%s", diff)
		}
		for _, one := range got {
			if strings.Contains(is[one], `"olm.operatorframework.io/`) {
				return fmt.Errorf("%s is still marked: %s", one, is[one])
			}
		}
		return m.stands(ctx)
	})
}

// mayStay says of what there was not before that it is the ServiceAccount which a move has made, or rights of that.
func (m *mortal) mayStay(name string) bool {
	_, rest, _ := strings.Cut(name, " ")
	_, name, _ = strings.Cut(rest, "/")
	return name == m.name+"-installer" || strings.HasPrefix(name, m.name+":"+m.name+"-installer:")
}

func (m *mortal) isMoved(ctx context.Context) error {
	return soon(ctx, func(ctx context.Context) error {
		ext := &ocv1.ClusterExtension{}
		if err := m.Environment.Admin.Get(ctx, client.ObjectKey{Name: m.name}, ext); err != nil {
			return err
		}
		if row := overview.RowOf(ext); row.Health != overview.Ready || ext.Spec.Suspend || ext.Spec.Source.Catalog.Version != "" {
			return fmt.Errorf("the extension is %s (%s), suspended %t, at version %q", row.Health, row.Message, ext.Spec.Suspend, ext.Spec.Source.Catalog.Version)
		}
		is, err := m.take(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(m.moved, is); diff != "" {
			return fmt.Errorf("objects (-want +got):\n%s", diff)
		}
		return m.stands(ctx)
	})
}

// deleteAccount deletes the ServiceAccount that a move has made, with its rights.
func (m *mortal) deleteAccount(ctx context.Context) error {
	is, err := m.take(ctx)
	if err != nil {
		return err
	}
	for _, name := range is.names() {
		if m.before[name] != "" || !m.mayStay(name) {
			continue
		}
		kind, rest, _ := strings.Cut(name, " ")
		namespace, name, _ := strings.Cut(rest, "/")
		one := &unstructured.Unstructured{}
		one.SetAPIVersion("rbac.authorization.k8s.io/v1")
		if kind == "ServiceAccount" {
			one.SetAPIVersion("v1")
		}
		one.SetKind(kind)
		one.SetNamespace(namespace)
		one.SetName(name)
		if err := client.IgnoreNotFound(m.OLM.Admin.Delete(ctx, one)); err != nil {
			return err
		}
	}
	return nil
}
