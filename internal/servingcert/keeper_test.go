package servingcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/selfissued"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// secretWith is the data of a Secret with a certificate from start.
func secretWith(t *testing.T, names ...string) map[string][]byte {
	t.Helper()
	made, err := Catalogs.issue(names, start)
	if err != nil {
		t.Fatal(err)
	}
	return selfissued.Material{}.Replaced(nil, made)
}

var key = types.NamespacedName{Namespace: "system", Name: Catalogs.Secret}

// clock can be moved while keepers run.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// replica is a Keeper that runs as a manager would have it run, and a server
// with its certificate.
type replica struct {
	*Keeper
	*Certificate

	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	server *httptest.Server
}

func newReplica(t *testing.T, api *fake.Clientset, now func() time.Time) *replica {
	t.Helper()
	certificate := &Certificate{}
	keeper, err := New(Config{API: api, Server: Catalogs, Namespace: key.Namespace, Names: []string{"127.0.0.1"}, Certificate: certificate, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{
		Keeper: keeper, Certificate: certificate,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
		server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })),
	}
	r.server.TLS = &tls.Config{GetCertificate: certificate.GetCertificate, MinVersion: tls.VersionTLS12}
	r.server.StartTLS()
	// The test server brings a certificate of its own.
	r.server.TLS.Certificates = nil
	t.Cleanup(r.server.Close)
	t.Cleanup(r.queue.ShutDown)
	if err := keeper.secrets.Start(t.Context(), r.queue); err != nil {
		t.Fatal(err)
	}
	go r.work(t.Context())
	return r
}

func (r *replica) work(ctx context.Context) {
	for {
		request, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		if _, err := r.Reconcile(ctx, request); err != nil {
			r.queue.AddRateLimited(request)
		}
		r.queue.Done(request)
	}
}

// reach asks server with the trust of r, over a new connection.
func (r *replica) reach(t *testing.T, server *replica, now func() time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.Authorities())
	address := strings.TrimPrefix(server.server.URL, "https://")
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, Time: now}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func serial(r *replica) string {
	certificate, err := r.GetCertificate(nil)
	if err != nil {
		return ""
	}
	return certificate.Leaf.SerialNumber.String()
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	testkit.Await(t, 30*time.Second, "waiting", condition)
}

// newAPI refuses updates of what was changed in between, as an API server does.
func newAPI(objects ...runtime.Object) *fake.Clientset {
	api := fake.NewClientset(objects...)
	var mu sync.Mutex
	version := map[string]bool{}
	api.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		secret := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret)
		if version[secret.ResourceVersion] {
			return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, errors.New("changed"))
		}
		version[secret.ResourceVersion] = true
		secret.ResourceVersion += "1"
		return false, nil, nil
	})
	return api
}

func TestReplicasShareACertificateAndTrustEachOther(t *testing.T) {
	t.Parallel()
	api, time := newAPI(), &clock{now: start}
	replicas := []*replica{newReplica(t, api, time.read), newReplica(t, api, time.read), newReplica(t, api, time.read)}
	same := func(not string) func() bool {
		return func() bool {
			first := serial(replicas[0])
			return first != "" && first != not &&
				!slices.ContainsFunc(replicas, func(r *replica) bool { return serial(r) != first || r.Check(nil) != nil })
		}
	}
	everyoneReachesEveryone := func() {
		t.Helper()
		for _, client := range replicas {
			for _, server := range replicas {
				if err := client.reach(t, server, time.read); err != nil {
					t.Error(err)
				}
			}
		}
	}
	eventually(t, same(""))
	everyoneReachesEveryone()
	first, authorities := serial(replicas[0]), string(replicas[0].Authorities())

	time.move(lifetime - lifetime/3)
	for _, r := range replicas {
		r.queue.Add(reconcile.Request{})
	}
	eventually(t, func() bool {
		return !slices.ContainsFunc(replicas, func(r *replica) bool { return string(r.Authorities()) == authorities })
	})
	if got := serial(replicas[0]); got != first {
		t.Error("the successor is served as soon as it is there")
	}
	everyoneReachesEveryone()

	time.move(selfissued.TrustDelay)
	replicas[1].queue.Add(reconcile.Request{})
	eventually(t, same(first))
	everyoneReachesEveryone()
}

func TestLostSecretIsMadeAgain(t *testing.T) {
	t.Parallel()
	api := newAPI()
	now := func() time.Time { return start }
	r := newReplica(t, api, now)
	eventually(t, func() bool { return r.Check(nil) == nil })
	first := serial(r)
	if err := api.CoreV1().Secrets(key.Namespace).Delete(t.Context(), key.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		if r.Check(nil) != nil {
			t.Fatal("the certificate was dropped before there was another")
		}
		return serial(r) != first
	})
	if err := r.reach(t, r, now); err != nil {
		t.Error(err)
	}
}

func TestSecretKeepsWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	api := newAPI(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"a": "b"}},
		Data:       map[string][]byte{"other": []byte("x")},
	})
	r := newReplica(t, api, func() time.Time { return start })
	eventually(t, func() bool { return r.Check(nil) == nil })
	secret, err := api.CoreV1().Secrets(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if secret.Labels["a"] != "b" || string(secret.Data["other"]) != "x" {
		t.Errorf("labels %v, %d entries", secret.Labels, len(secret.Data))
	}
}

// A Keeper that is at rest writes nothing.
func TestNothingIsWrittenAtRest(t *testing.T) {
	t.Parallel()
	api := newAPI(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       secretWith(t, "127.0.0.1"),
	})
	r := newReplica(t, api, func() time.Time { return start })
	eventually(t, func() bool { return r.Check(nil) == nil })
	result, err := r.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter != lifetime-lifetime/3 {
		t.Errorf("got %+v, %v", result, err)
	}
	for _, action := range api.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" {
			t.Errorf("unexpected request %s", verb)
		}
	}
}

func TestFailedWriteIsReportedWithoutSecrets(t *testing.T) {
	t.Parallel()
	api := newAPI()
	failure := errors.New("no API server")
	api.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, failure })
	r := newReplica(t, api, func() time.Time { return start })
	eventually(t, func() bool {
		_, err := r.Reconcile(t.Context(), reconcile.Request{})
		return errors.Is(err, failure) && !strings.Contains(err.Error(), "PRIVATE")
	})
	if r.Check(nil) == nil || r.Authorities() != nil {
		t.Error("a certificate that nobody else can know is used")
	}
}

func TestNewRefusesConfigs(t *testing.T) {
	t.Parallel()
	good := Config{API: newAPI(), Server: Catalogs, Namespace: key.Namespace, Names: []string{"a"}, Certificate: &Certificate{}, Now: time.Now}
	for name, spoil := range map[string]func(*Config){
		"no client":     func(c *Config) { c.API = nil },
		"no server":     func(c *Config) { c.Server = Server{} },
		"no namespace":  func(c *Config) { c.Namespace = "" },
		"no names":      func(c *Config) { c.Names = nil },
		"no clock":      func(c *Config) { c.Now = nil },
		"foreign name":  func(c *Config) { c.Names = []string{"ü.example"} },
		"unusable name": func(c *Config) { c.Names = []string{"."} },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
