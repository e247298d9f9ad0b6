package classic

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Names of classic OLM are on clusters: nothing in this file may change.

// maxName is how long names of roles are at most.
const maxName = 63

// RoleName is the name that classic OLM gives to the Role and the RoleBinding of a permission,
// and in a group of all namespaces to a ClusterRole and its binding besides.
func RoleName(csv string, permission operatorsv1alpha1.StrategyDeploymentPermissions) (string, error) {
	return named(csv+"-"+permission.ServiceAccountName, struct {
		Name       string                                          `json:"name,omitempty"`
		Permission operatorsv1alpha1.StrategyDeploymentPermissions `json:"permission"`
	}{csv, permission})
}

// ClusterRoleName is [RoleName] for a cluster permission.
func ClusterRoleName(csv, namespace string, permission operatorsv1alpha1.StrategyDeploymentPermissions) (string, error) {
	return named(csv, struct {
		Name       string                                          `json:"name,omitempty"`
		Namespace  string                                          `json:"namespace,omitempty"`
		Permission operatorsv1alpha1.StrategyDeploymentPermissions `json:"permission"`
	}{csv, namespace, permission})
}

// RulesHash is the label olm.permissions.hash of a role.
func RulesHash(rules []rbacv1.PolicyRule) (string, error) { return labelHash(rules) }

// BindingHash is the label olm.permissions.hash of a binding.
func BindingHash(role rbacv1.RoleRef, subjects []rbacv1.Subject) (string, error) {
	return labelHash(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{role, subjects})
}

// named cuts a base so that it has room for the hash of a value. A hyphen may be left at its end.
func named(base string, value any) (string, error) {
	var text bytes.Buffer
	// The encoder ends the JSON with a line break, which is part of the digest.
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return "", fmt.Errorf("hashing what %q may do: %w", base, err)
	}
	hash := base62(text.Bytes())
	if len(base)+len(hash) > maxName {
		base = base[:maxName-len(hash)-1]
	}
	return base + "-" + hash, nil
}

// labelHash has no line break in it.
func labelHash(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hashing rights: %w", err)
	}
	return base62(text), nil
}

// base62 is the SHA-224 digest as a number of digits 0-9a-zA-Z.
func base62(text []byte) string {
	const base = 62
	digest := sha256.Sum224(text)
	return new(big.Int).SetBytes(digest[:]).Text(base)
}

// operatorObjectName is the name of the object of the kind Operator for a package in a namespace.
func operatorObjectName(pkg, namespace string) string { return pkg + "." + namespace }

// serviceNames are the names of the Service of a deployment that is called by the API server:
// classic OLM keeps dots in some places and replaces them in others.
func serviceNames(deployment string) []string {
	const suffix = "-service"
	names := []string{deployment + suffix}
	if strings.Contains(deployment, ".") {
		names = append(names, strings.ReplaceAll(deployment, ".", "-")+suffix)
	}
	return names
}

func certificateName(service string) string   { return service + "-cert" }
func authReaderName(service string) string    { return service + "-auth-reader" }
func authDelegatorName(service string) string { return service + "-system:auth-delegator" }
