package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestPullSecretOfACatalog has two catalogs of one image that takes credentials, and names the
// Secret with them in one. That is served as soon as the Secret is there, and stays served
// when it goes; the other is refused all the time, whatever is at hand.
func TestPullSecretOfACatalog(t *testing.T) {
	t.Parallel()
	const name, other, password = "private-catalog", "private-catalog-without", "hunter2hunter2"
	theSuite.Registry.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			user, given, _ := request.BasicAuth()
			switch {
			case request.URL.Path == "/v2/" && user == "":
				// A registry with content for everybody, too, says so to who asks for some of it; the
				// transport sends credentials if this says that there are any to send.
				w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
				w.WriteHeader(http.StatusUnauthorized)
			case strings.HasPrefix(request.URL.Path, "/v2/catalog-"+name) && (user != "robot" || given != password):
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, request)
			}
		})
	})
	pushCatalog(t, name, "v1", testkit.Catalog(registryHost, operators(name, "1.0.0")...))
	image := catalogRef(name, "v1")
	for catalog, secrets := range map[string][]ocv1.PullSecret{name: {{Name: name}}, other: nil} {
		if err := theSuite.CreateCatalog(t.Context(), catalog, image, func(catalog *ocv1.ClusterCatalog) {
			catalog.Labels = map[string]string{"test": name}
			catalog.Spec.Source.Image.PullSecrets = secrets
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: catalog}}) })
	}
	catalogSays(t, name, ocv1.TypeReady, metav1.ConditionFalse, `pull secret "`+name+`" in namespace "`+environment.SystemNamespace+`" does not exist: create it there`)
	catalogSays(t, other, ocv1.TypeReady, metav1.ConditionFalse, "authentication required")

	secret := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: environment.SystemNamespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`,
				theSuite.Registry.Host(), base64.StdEncoding.EncodeToString([]byte("robot:"+password)))},
		}
	}
	if err := theSuite.Admin.Create(t.Context(), secret()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, secret()) })
	serving(t, name)
	catalogSays(t, name, ocv1.TypeReady, metav1.ConditionTrue, "is served")

	remove(t, secret())
	catalogSays(t, name, ocv1.TypeReady, metav1.ConditionTrue, "is still served, and nothing newer can be had: source catalog content: pull secret")
	catalogSays(t, other, ocv1.TypeReady, metav1.ConditionFalse, "authentication required")

	if err := theSuite.Admin.Create(t.Context(), secret()); err != nil {
		t.Fatal(err)
	}
	catalogSays(t, name, ocv1.TypeProgressing, metav1.ConditionTrue, "Successfully unpacked")
}

// catalogSays waits until a condition of a catalog has that status, and a message with that.
func catalogSays(t *testing.T, catalog, kind string, status metav1.ConditionStatus, want string) {
	t.Helper()
	eventually(t, "catalog "+catalog, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: catalog}, found); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(found.Status.Conditions, kind)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, want) {
			return fmt.Errorf("conditions are %+v", found.Status.Conditions)
		}
		return nil
	})
}
