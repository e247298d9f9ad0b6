package pullsecret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// errNoAccount does not quote the token.
var errNoAccount = errors.New("the token is not that of a ServiceAccount")

// AccountOf returns the ServiceAccount that a token is of. The token is not
// verified: it is the caller's own. No error quotes it.
func AccountOf(token []byte) (types.NamespacedName, error) {
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return types.NamespacedName{}, errNoAccount
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return types.NamespacedName{}, errNoAccount
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return types.NamespacedName{}, errNoAccount
	}
	subject := strings.Split(claims.Subject, ":")
	if len(subject) != 4 || subject[0] != "system" || subject[1] != "serviceaccount" || subject[2] == "" || subject[3] == "" {
		return types.NamespacedName{}, errNoAccount
	}
	return types.NamespacedName{Namespace: subject[2], Name: subject[3]}, nil
}
