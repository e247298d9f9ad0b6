package bundle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestPlaceholdersAreRemoved is F3.
func TestPlaceholdersAreRemoved(t *testing.T) {
	t.Parallel()
	const (
		crd     = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
		service = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\n"
		hooks   = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\n"
	)
	base := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	certificate := base(selfSigned(t))
	tests := map[string]struct {
		object string
		want   []string
	}{
		"F3: a line feed": {
			object: crd + "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: Cg==}}}}",
			want:   []string{`CustomResourceDefinition "x": spec.conversion.webhook.clientConfig.caBundle contains no certificate and is left out`},
		},
		"F3: a text that is not base64": {
			object: service + "spec: {caBundle: '?'}",
			want:   []string{`APIService "x": spec.caBundle contains no certificate and is left out`},
		},
		"F3: base64 of no PEM": {
			object: service + "spec: {caBundle: " + base("placeholder") + "}",
			want:   []string{`APIService "x": spec.caBundle contains no certificate and is left out`},
		},
		"F3: a key": {
			object: hooks + "webhooks: [{clientConfig: {caBundle: " + base("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n") + "}}]",
			want:   []string{`ValidatingWebhookConfiguration "x": webhooks[0].clientConfig.caBundle contains no certificate and is left out`},
		},
		"F3: one of two webhooks": {
			object: hooks + "webhooks: [{clientConfig: {caBundle: " + certificate + "}}, {clientConfig: {caBundle: Cg==}}]",
			want:   []string{`ValidatingWebhookConfiguration "x": webhooks[1].clientConfig.caBundle contains no certificate and is left out`},
		},
		"a certificate":             {object: service + "spec: {caBundle: " + certificate + "}"},
		"no value":                  {object: service + "spec: {caBundle: ''}"},
		"no text":                   {object: service + "spec: {caBundle: 5}"},
		"no webhooks":               {object: hooks + "webhooks: 7"},
		"a kind of the same name":   {object: "apiVersion: example.test/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: Cg==}"},
		"a ConfigMap with that key": {object: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {caBundle: Cg==}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			before := object.DeepCopy()
			rendered := Rendered{Placeholders: removePlaceholders([]*unstructured.Unstructured{object})}
			if diff := cmp.Diff(test.want, rendered.Warnings()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if changed := !cmp.Equal(before, object); changed != (len(test.want) > 0) {
				t.Errorf("changed: %t", changed)
			}
			if again := removePlaceholders([]*unstructured.Unstructured{object}); len(again) > 0 {
				t.Errorf("removed again: %v", again)
			}
		})
	}
}

func selfSigned(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}
