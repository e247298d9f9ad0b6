package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users and groups of the certificates that a cluster starts with.
const (
	adminUser             = "admin"
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler"
	kubeletClientUser     = "kube-apiserver-kubelet-client"
	frontProxyUser        = "front-proxy-client"
	// kwokUser plays the kubelet of every node, for which no role exists.
	kwokUser = "kwok"

	mastersGroup = "system:masters"
)

// tokenLifetime outlives every cluster: who holds a token need not renew it.
const tokenLifetime = 365 * 24 * time.Hour

// RESTConfig is the access of the administrator: a new copy with each call,
// without a limit on the rate of requests.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// Kubeconfig is the path of the kubeconfig of the administrator.
func (c *Cluster) Kubeconfig() string {
	return c.dir.join("admin.kubeconfig")
}

// ConfigFor is the access of a user in the groups, by client certificate. The
// user has the rights that RBAC gives, to begin with none.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.issue(subject{user: user, groups: groups})
	if err != nil {
		return nil, err
	}
	config := c.anonymousConfig()
	config.CertData = pair.certPEM
	config.KeyData = pair.keyPEM
	return config, nil
}

// KubeconfigFor writes the access that ConfigFor gives to a new kubeconfig and
// returns its path. Stop removes the file.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	config, err := c.ConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeNewKubeconfig(user, config)
}

// KubeconfigForServiceAccount writes a kubeconfig with a token of an existing
// ServiceAccount and returns its path. The token is valid until the cluster or
// the ServiceAccount is gone. Stop removes the file.
func (c *Cluster) KubeconfigForServiceAccount(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	request, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := c.anonymousConfig()
	config.BearerToken = request.Status.Token
	return c.writeNewKubeconfig(name, config)
}

// WriteServingPair writes a certificate for a server at the addresses to <path>.crt
// and <path>.key, signed by the authority that RESTConfig trusts.
func (c *Cluster) WriteServingPair(path, name string, hosts []string, addresses ...netip.Addr) error {
	pair, err := c.authority.issue(subject{user: name, hosts: hosts, addresses: addresses})
	if err != nil {
		return err
	}
	return pair.write(path)
}

// anonymousConfig reaches and trusts the API server, and nothing more.
func (c *Cluster) anonymousConfig() *rest.Config {
	return &rest.Config{
		Host:            c.host,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.certPEM},
		QPS:             -1,
	}
}

func (c *Cluster) writeNewKubeconfig(user string, config *rest.Config) (string, error) {
	file, err := os.CreateTemp(c.dir.path, "user-*.kubeconfig")
	if err != nil {
		return "", fmt.Errorf("making kubeconfig of %s: %w", user, err)
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("making kubeconfig of %s: %w", user, err)
	}
	return file.Name(), writeKubeconfig(file.Name(), user, config)
}

func writeKubeconfig(path, user string, config *rest.Config) error {
	const name = "operator-controller-test"
	kubeconfig := clientcmdapi.Config{
		CurrentContext: name,
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			user: {
				ClientCertificateData: config.CertData,
				ClientKeyData:         config.KeyData,
				Token:                 config.BearerToken,
			},
		},
	}
	if err := clientcmd.WriteToFile(kubeconfig, path); err != nil {
		return fmt.Errorf("writing kubeconfig of %s: %w", user, err)
	}
	return nil
}
