package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestWebhookOperatorDigests holds every object of one real bundle, with all
// three kinds of webhooks, against digests of what the reference implementation
// makes of it.
func TestWebhookOperatorDigests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Corpus(t), "bundles", "webhook-operator", "0.0.5")

	const (
		clusterRole = "ClusterRole/webhook-operator.v-119edugfdvz48oyy2ctmbp4ec5c4a7zbv5k03vg4y3ve"
		role        = "ClusterRole/webhook-operator.v-1zfvwth88plw3th2midra1jqduroo1q7omiagjujsiu3"
		binding     = "ClusterRoleBinding/webhook-operator.v-119edugfdvz48oyy2ctmbp4ec5c4a7zbv5k03vg4y3ve"
		roleBinding = "ClusterRoleBinding/webhook-operator.v-1zfvwth88plw3th2midra1jqduroo1q7omiagjujsiu3"
		account     = "ServiceAccount/webhook-operator-controller-manager"
		crd         = "CustomResourceDefinition/webhooktests.webhook.operators.coreos.io"
		deployment  = "Deployment/webhook-operator-controller-manager"
		validating  = "ValidatingWebhookConfiguration/vwebhooktest-v1.kb.io"
		mutating    = "MutatingWebhookConfiguration/mwebhooktest-v1.kb.io"
		service     = "Service/webhook-operator-controller-manager-service"
		issuer      = "Issuer/webhook-operator-controller-manager-service-c-selfsigned-issuer"
		certificate = "Certificate/webhook-operator-controller-manager-service-cert"
	)
	want := map[CertificateProvider]map[string]string{
		NoCertificates: {
			crd: "1ca99e835c1ca791", deployment: "ed365785755d0516",
			validating: "a437ea73cc4b6241", mutating: "9492aa3d8aa89109", service: "1090ac8aa7f7efc0",
		},
		CertManager: {
			crd: "7e00bd026390d535", deployment: "b284a0485ea47053",
			validating: "0b514d9fbba76b49", mutating: "93823030885a9df1", service: "1090ac8aa7f7efc0",
			issuer: "380c9f099bcd3141", certificate: "27dea89ad34fb3d4",
		},
		ServiceCA: {
			crd: "cf8bbe979281da90", deployment: "b284a0485ea47053",
			validating: "0e9aaf4d8a5f83ac", mutating: "2a13a32c8551050b", service: "284edb5f259230c8",
		},
	}
	for provider, digests := range want {
		digests[clusterRole], digests[binding] = "b74bb6a4e23cd91b", "fc85ad603fbbe5b6"
		digests[role], digests[roleBinding] = "4b55e5dbdb0cd5e1", "ed281c54caf6c4fd"
		digests[account] = "1781fae60bc446b4"

		t.Run("provider "+string(provider), func(t *testing.T) {
			t.Parallel()
			b, err := Parse(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			// Render refuses webhooks without a provider; what is made of them
			// in any case is worth a vector.
			opts := Options{InstallNamespace: "webhook-system", Certificates: provider}
			objects, err := newRenderer(b, opts, []string{""}).render()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, object := range objects {
				encoded, err := json.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(encoded)
				got[object.GetKind()+"/"+object.GetName()] = hex.EncodeToString(sum[:8])
			}
			if diff := cmp.Diff(digests, got); diff != "" {
				t.Errorf("-reference +rendered:\n%s", diff)
			}
		})
	}
}
