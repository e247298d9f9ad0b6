package pullsecret

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// errNoCredentials is all that is said about content that cannot be used: the
// errors of a parser quote what they parse.
var errNoCredentials = errors.New("no valid .dockerconfigjson or .dockercfg")

// credentials are the entries of a Docker configuration by registry or
// repository. They are taken over whole, whatever kind of credentials they hold.
type credentials map[string]json.RawMessage

// credentialsOf returns what is in a Secret. The error is errNoCredentials.
func credentialsOf(secret *corev1.Secret) (credentials, error) {
	var older, newer credentials
	if raw, ok := secret.Data[corev1.DockerConfigKey]; ok {
		if err := json.Unmarshal(raw, &older); err != nil || !older.readable() {
			return nil, errNoCredentials
		}
	}
	if raw, ok := secret.Data[corev1.DockerConfigJsonKey]; ok {
		var err error
		if newer, err = decode(raw); err != nil {
			return nil, err
		}
	}
	found := merge([]credentials{older, newer})
	if len(found) == 0 {
		return nil, errNoCredentials
	}
	return found, nil
}

// decode reads a Docker configuration file. The error is errNoCredentials.
func decode(data []byte) (credentials, error) {
	var config struct {
		Auths credentials `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil || !config.Auths.readable() {
		return nil, errNoCredentials
	}
	return config.Auths, nil
}

// readable says whether the image puller can read all entries. It reads nothing of
// a file in which it cannot, not even what others brought.
func (c credentials) readable() bool {
	for _, raw := range c {
		var entry struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		}
		if err := json.Unmarshal(raw, &entry); err != nil {
			return false
		}
	}
	return true
}

// merge returns the entries of all, of which later ones win.
func merge(all []credentials) credentials {
	merged := credentials{}
	for _, each := range all {
		maps.Copy(merged, each)
	}
	return merged
}

// under returns the entries of both, of which others win: where they have some for a
// registry or a part of it, those for what is below it go, too, though the image puller
// would prefer them for being more specific.
func (c credentials) under(others credentials) credentials {
	merged := maps.Clone(others)
	for key, entry := range c {
		covered := false
		for other := range others {
			covered = covered || strings.HasPrefix(canonicalKey(key)+"/", canonicalKey(other)+"/")
		}
		if !covered {
			merged[key] = entry
		}
	}
	return merged
}

// canonicalKey is the registry or repository that the image puller takes a key for.
func canonicalKey(key string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(key, "http://"), "https://")
	if name != key {
		name, _, _ = strings.Cut(name, "/")
	}
	registry, rest, hasRest := strings.Cut(name, "/")
	if registry == "index.docker.io" || registry == "registry-1.docker.io" {
		registry = "docker.io"
	}
	if !hasRest {
		return registry
	}
	return registry + "/" + rest
}

// encode returns the content of a Docker configuration file.
func (c credentials) encode() ([]byte, error) {
	data, err := json.Marshal(map[string]credentials{"auths": c})
	if err != nil {
		return nil, errNoCredentials
	}
	return data, nil
}
