package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Names are part of what is installed: a release that is taken over or upgraded
// must find its objects under the names they have. Nothing in this file may
// change the name of an object that can exist.

const (
	maxLabelLength        = 63
	defaultServiceAccount = "default"
)

// suffixed is base-suffix with the base cut so that the whole has at most 63
// characters. When base and suffix alone have exactly 63 the result has 64: an
// off-by-one that names on clusters have, harmless for objects whose names may
// be longer than a DNS label.
func suffixed(base, suffix string) string {
	if len(base)+len(suffix) > maxLabelLength {
		base = base[:maxLabelLength-len(suffix)-1]
	}
	return base + "-" + suffix
}

// contentHash is the base-36 number of the SHA-224 digest of the JSON of a value.
func contentHash(value any) (string, error) {
	hash := sha256.New224()
	// The encoder ends the JSON with a line break, which is part of the digest.
	if err := json.NewEncoder(hash).Encode(value); err != nil {
		return "", err
	}
	var number big.Int
	return number.SetBytes(hash.Sum(nil)).Text(36), nil
}

func serviceAccountName(permission operatorsv1alpha1.StrategyDeploymentPermissions) string {
	if permission.ServiceAccountName == "" {
		return defaultServiceAccount
	}
	return permission.ServiceAccountName
}

// rbacName names the role and the binding for a permission. The hash covers
// the permission as authored, so that a changed rule gives a new role.
func rbacName(csvName string, permission operatorsv1alpha1.StrategyDeploymentPermissions) (string, error) {
	hash, err := contentHash(permission)
	if err != nil {
		return "", err
	}
	return suffixed(csvName+"-"+serviceAccountName(permission), hash), nil
}

// shortened is a name that is too long for its kind, cut and told apart from
// others by a hash of the whole.
func shortened(name string, limit int) string {
	const hashLength = 8
	if len(name) <= limit {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	base := strings.TrimRight(name[:limit-hashLength-1], "-.")
	return base + "-" + hex.EncodeToString(hash[:hashLength/2])
}

// webhookServiceName is the exception to the off-by-one of [suffixed]: the name
// of a Service is a DNS label, 64 characters cannot exist.
func webhookServiceName(deployment string) string {
	const suffix = "service"
	base := strings.ReplaceAll(deployment, ".", "-")
	if len(base)+len(suffix) == maxLabelLength {
		base = shortened(base, len(base)-1)
	}
	return suffixed(base, suffix)
}

// certificateName is the name of the serving certificate of a deployment and
// of the Secret that holds it.
func certificateName(deployment string) string {
	return suffixed(webhookServiceName(deployment), "cert")
}

func issuerName(deployment string) string {
	return suffixed(certificateName(deployment), "selfsigned-issuer")
}

// webhookName is the name of a webhook and of its configuration. Classic OLM
// generated names from it, which is why some end in a dash.
func webhookName(webhook operatorsv1alpha1.WebhookDescription) string {
	return strings.TrimSuffix(webhook.GenerateName, "-")
}
