package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// Controller is the name of the Deployment.
const Controller = "operator-controller-controller-manager"

// controllerRepository is where images of the controller are pushed.
const controllerRepository = "operator-controller"

// PushController stores an image of the controller under a tag, and gives a reference
// by digest. It is that of an OCI layout or of a program, by path. Notes are labels:
// other notes make another image of the same program.
func (n *Node) PushController(ctx context.Context, path, tag string, notes map[string]string) (string, error) {
	image, err := controllerImage(path)
	if err != nil {
		return "", err
	}
	if len(notes) > 0 {
		if image, err = labelled(image, notes); err != nil {
			return "", err
		}
	}
	digest, err := push(ctx, n.Programs, controllerRepository+":"+tag, image)
	return ProgramRegistry + "/" + controllerRepository + "@" + digest, err
}

func labelled(image v1.Image, labels map[string]string) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image of the controller: %w", err)
	}
	file = file.DeepCopy()
	file.Config.Labels = labels
	return mutate.ConfigFile(image, file)
}

// Default is what most people deploy.
const Default = "config/default"

// deployment is what is deployed as the page on private registries has it: with trust in
// the registry here.
const deployment = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - %[1]s
configMapGenerator:
  - name: registry-authorities
    namespace: olmv1-system
    files: [ca.crt]
generatorOptions: {disableNameSuffixHash: true}
replicas:
  - {name: %[2]s, count: %[3]d}
patches:
  - target: {kind: Deployment, name: %[2]s}
    patch: |
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--pull-cas-dir=/etc/registry-authorities"}
      - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: registry-authorities, mountPath: /etc/registry-authorities, readOnly: true}}
      - {op: add, path: /spec/template/spec/volumes/-, value: {name: registry-authorities, configMap: {name: registry-authorities}}}
%[4]s`

// Deploy has make deploy apply manifests from the checkout, a folder of it, with an image
// of the controller and so many replicas, and waits until they are rolled out. Patches
// are more lines of a JSON patch of the Deployment, each as one of deployment.
func (n *Node) Deploy(ctx context.Context, from, image string, replicas int, patches ...string) error {
	folder, err := n.folder(from)
	if err != nil {
		return err
	}
	return n.make(ctx, folder, replicas, patches, "deploy", "IMAGE="+image)
}

// DeployManifest is Deploy of a manifest that names the image itself.
func (n *Node) DeployManifest(ctx context.Context, manifest string, replicas int) error {
	const file = "manifest.yaml"
	if err := n.writeDeployment(file, manifest); err != nil {
		return err
	}
	return n.make(ctx, file, replicas, nil, "deploy")
}

// Run is Deploy of an image that make run builds, and loads onto the node. Its version makes
// it another image than the one that was pushed: the kubelet knows that it has pulled that
// one, and would pull it by its other name, too, from where nobody serves it.
func (n *Node) Run(ctx context.Context, from string, replicas int) error {
	folder, err := n.folder(from)
	if err != nil {
		return err
	}
	return n.make(ctx, folder, replicas, nil, "run", "CONTAINERD="+n.settings.Socket, "VERSION=loaded")
}

// folder is one of the checkout, from where the deployment is.
func (n *Node) folder(from string) (string, error) {
	folder, err := filepath.Rel(n.path("deployment"), filepath.Join(n.root, filepath.FromSlash(from)))
	if err != nil {
		return "", fmt.Errorf("writing the deployment: %w", err)
	}
	return folder, nil
}

// make runs a target that applies a deployment of the resources.
func (n *Node) make(ctx context.Context, resources string, replicas int, patches []string, args ...string) error {
	var more strings.Builder
	for _, patch := range patches {
		more.WriteString("      - " + patch + "\n")
	}
	if err := n.writeDeployment("kustomization.yaml", fmt.Sprintf(deployment, resources, Controller, replicas, more.String())); err != nil {
		return err
	}
	if err := n.writeDeployment("ca.crt", string(n.Cluster.RESTConfig().CAData)); err != nil {
		return err
	}
	_, err := n.Make(ctx, append(args, "CONFIG="+n.path("deployment"))...)
	return err
}

func (n *Node) writeDeployment(name, content string) error {
	dir := n.path("deployment")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing the deployment: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing the deployment: %w", err)
	}
	return nil
}

// RolledOut waits until a Deployment is as its spec says.
func (n *Node) RolledOut(ctx context.Context, namespace, name string) error {
	_, err := n.Kubectl(ctx, "", "-n", namespace, "rollout", "status", "deployment/"+name, fmt.Sprintf("--timeout=%s", startPatience))
	return err
}

// CatalogClient reads catalogs through their Service, over a new connection for each
// request, as a client that has just started does.
func (n *Node) CatalogClient(ctx context.Context) (*http.Client, error) {
	service := &corev1.Service{}
	if err := n.Admin.Get(ctx, client.ObjectKey{Namespace: environment.SystemNamespace, Name: "catalogd-service"}, service); err != nil {
		return nil, fmt.Errorf("finding the catalogs: %w", err)
	}
	secret := &corev1.Secret{}
	if err := n.Admin.Get(ctx, client.ObjectKey{Namespace: environment.SystemNamespace, Name: "operator-controller-catalog-server"}, secret); err != nil {
		return nil, fmt.Errorf("finding whom to trust for catalogs: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	address := net.JoinHostPort(service.Spec.ClusterIP, "443")
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}, nil
}
