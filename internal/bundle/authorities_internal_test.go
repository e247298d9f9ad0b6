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
	conversion := func(value string) string {
		return crd + "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: " + value + "}}}}"
	}
	const removed = `CustomResourceDefinition "x": spec.conversion.webhook.clientConfig.caBundle contains no certificate and is left out`
	tests := map[string]struct {
		object string
		want   []string
	}{
		"F3: a line feed": {
			object: conversion("Cg=="),
			want:   []string{removed},
		},
		"F3: a text that is not base64": {
			object: conversion("'?'"),
			want:   []string{removed},
		},
		"F3: base64 of no PEM": {
			object: conversion(base("placeholder")),
			want:   []string{removed},
		},
		"F3: a key": {
			object: conversion(base("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n")),
			want:   []string{removed},
		},
		"a webhook configuration, which a job of the chart changes": {object: hooks + "webhooks: [{clientConfig: {caBundle: Cg==}}]"},
		"an API service":            {object: service + "spec: {caBundle: '?'}"},
		"a certificate":             {object: conversion(base(selfSigned(t)))},
		"no value":                  {object: conversion("''")},
		"no text":                   {object: conversion("5")},
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
			if again := (Rendered{Placeholders: removePlaceholders([]*unstructured.Unstructured{object})}); len(again.Warnings()) > 0 {
				t.Errorf("removed again: %v", again.Warnings())
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
