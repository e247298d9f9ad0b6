package bundle

import (
	"encoding/json"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// The names in this file are on clusters: a row that fails is an upgrade that
// loses objects.

func TestContentHash(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		json   string
		want   string
	}{
		"string":      {reason: "base 36 of SHA-224", json: `"a"`, want: "1lu1qv1451mq7gv9upu1cx8ffffi07rel5xvbvvc44dh"},
		"null":        {reason: "null has a hash too", json: `null`, want: "2im0kl1kwvzn46sr4cdtkvmdzrlurvj51xdzhwdht8l0"},
		"empty":       {reason: "an empty map", json: `{}`, want: "16jfjhihxbzhfhs1k5mimq740kvioi98pfbea9q6qtf9"},
		"HTML escape": {reason: "the encoder escapes HTML", json: `{"x":"<&>"}`, want: "etgif80vwbbgm48xjo90had6j6t3997qpqfjd9887mz"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var value any
			if err := json.Unmarshal([]byte(tc.json), &value); err != nil {
				t.Fatal(err)
			}
			got, err := contentHash(value)
			if err != nil || got != tc.want {
				t.Errorf("contentHash(%s) = %q, %v, want %q (%s)", tc.json, got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestRBACName(t *testing.T) {
	t.Parallel()
	pods := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	namespaces := rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	argocd := []rbacv1.PolicyRule{
		{Verbs: all, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		{Verbs: all, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}},
		{Verbs: []string{"create", "patch"}, APIGroups: []string{""}, Resources: []string{"events"}},
	}
	const argocdAccount = "argocd-operator-controller-manager"
	const ecrAccount = "ecr-secret-operator-controller-manager"
	tests := map[string]struct {
		csv     string
		account string
		rules   []rbacv1.PolicyRule
		want    string
	}{
		"one rule":              {csv: "op.v1.0.0", account: "sa", rules: []rbacv1.PolicyRule{pods}, want: "op.v1.0.0-sa-3wviurxqrxqx9tcfeq9i80qbm0stl686z1sd97orsyx"},
		"for all namespaces":    {csv: "op.v1.0.0", account: "sa", rules: []rbacv1.PolicyRule{pods, namespaces}, want: "op.v1.0.0-sa-4m63spn28j2l39bew3t7s2hl3w3alpad9z6zviithfk"},
		"no account":            {csv: "op.v1.0.0", rules: []rbacv1.PolicyRule{pods, namespaces}, want: "op.v1.0.0-default-2n9m8dyqelopfekkbsggr7umrtbeg69tppz8rlxfrr10"},
		"no rules":              {csv: "op.v1.0.0", account: "default", rules: []rbacv1.PolicyRule{}, want: "op.v1.0.0-default-2y241o5to95zsz6u0y37t2ycfrhj22r7lm067ske0bq1"},
		"null rules":            {csv: "op.v1.0.0", account: "sb", want: "op.v1.0.0-sb-styt6isy558829isdrgimxlzspj2uw8po5q14obc5xt"},
		"cut":                   {csv: "argocd-operator.v0.6.0", account: argocdAccount, rules: argocd, want: "argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3"},
		"cut at a dot, 43 long": {csv: "argocd-operator.v0.6.0", account: argocdAccount, rules: append(argocd[:3:3], namespaces), want: "argocd-operator.v0.-3gkm3u8zfarktdile5wekso69zs9bgzb988mhjm0y6p"},
		// An operator that comes from classic OLM, whose names are in the tests of package classic.
		"in place of classic OLM, one namespace": {csv: "ecr-secret-operator.v0.6.0", account: ecrAccount, rules: argocd, want: "ecr-secret-operato-22ggmzs1lkdo86bhsgq2ut4irkaec0mxyiwrxlcid74w"},
		"in place of classic OLM, all":           {csv: "ecr-secret-operator.v0.6.0", account: ecrAccount, rules: append(argocd[:3:3], namespaces), want: "ecr-secret-operato-32qawpzfkb44cseitsvs884ernbze2y27be0nm0omsbi"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			permission := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: tc.account, Rules: tc.rules}
			got, err := rbacName(tc.csv, permission)
			if err != nil || got != tc.want {
				t.Errorf("rbacName() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestWebhookNames(t *testing.T) {
	t.Parallel()
	const long = "my.object.thing.has.a.really.really.really.really.really.long.name"
	if got, want := webhookServiceName(long), "my-object-thing-has-a-really-really-really-really-reall-service"; got != want {
		t.Errorf("webhookServiceName(%q) = %q, want %q", long, got, want)
	}
	if got, want := certificateName(long), "my-object-thing-has-a-really-really-really-really-reall-se-cert"; got != want {
		t.Errorf("certificateName(%q) = %q, want %q", long, got, want)
	}
	if a, b := webhookServiceName(strings.Repeat("d", 56)), webhookServiceName(strings.Repeat("d", 57)); a == b {
		t.Errorf("deployments of 56 and 57 characters have the same Service %q", a)
	}
	lengths := map[int]struct {
		reason               string
		service, certificate int
	}{
		51: {reason: "the certificate has one more than a label, which its kind allows", service: 59, certificate: 64},
		55: {reason: "fits", service: 63, certificate: 63},
		56: {reason: "a Service of 64 characters cannot exist, a hash tells it from that of a longer name", service: 63, certificate: 63},
		57: {reason: "cut", service: 63, certificate: 63},
	}
	for length, want := range lengths {
		deployment := strings.Repeat("d", length)
		if got := len(webhookServiceName(deployment)); got != want.service {
			t.Errorf("length %d: service has %d characters, want %d (%s)", length, got, want.service, want.reason)
		}
		if got := len(certificateName(deployment)); got != want.certificate {
			t.Errorf("length %d: certificate has %d characters, want %d (%s)", length, got, want.certificate, want.reason)
		}
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		name   string
		want   string
	}{
		"fits":         {reason: "as it is", name: "abcdefghijklmnop", want: "abcdefghijklmnop"},
		"too long":     {reason: "the hash is that of the whole", name: "abcdefghijklmnopq", want: "abcdefg-@"},
		"other end":    {reason: "so another end is another name", name: "abcdefghijklmnopr", want: "abcdefg-@"},
		"cut at a dot": {reason: "a part of a name ends in no dot", name: "abcde.-hijklmnopq", want: "abcde-@"},
	}
	seen := map[string]bool{}
	for _, tc := range tests {
		got := shortened(tc.name, 16)
		start, isCut := strings.CutSuffix(tc.want, "@")
		switch {
		case !isCut && got != tc.want, isCut && (!strings.HasPrefix(got, start) || len(got) != len(start)+8):
			t.Errorf("shortened(%q) = %q, want %q (%s)", tc.name, got, tc.want, tc.reason)
		case seen[got]:
			t.Errorf("shortened(%q) = %q, which another name has (%s)", tc.name, got, tc.reason)
		}
		seen[got] = true
	}
}
