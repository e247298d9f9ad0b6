package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// podTokenFile identifies a process in a pod.
const podTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path

// addPullSecrets gives the path of the credentials file. While there are no
// credentials there is no file, so that the system's own are used.
func addPullSecrets(mgr ctrl.Manager, api kubernetes.Interface, o *options) (string, error) {
	file := filepath.Join(o.cachePath, "auth", "auth.json")
	keeper, err := pullsecret.New(pullsecret.Config{
		API:            api,
		File:           file,
		Global:         o.pullSecret,
		ServiceAccount: o.account(podTokenFile),
	})
	if err != nil {
		return "", fmt.Errorf("setting up pull secrets: %w", err)
	}
	if err := keeper.SetupWithManager(mgr); err != nil {
		return "", fmt.Errorf("setting up pull secrets: %w", err)
	}
	return file, nil
}

// account gives the ServiceAccount that the process runs as: what the flag says,
// else what the token in the pod says, else none. The token says nothing about a
// cluster that another file connects to.
func (o *options) account(tokenFile string) types.NamespacedName {
	if o.serviceAccount.Name != "" || o.kubeconfig != "" {
		return o.serviceAccount
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return types.NamespacedName{}
	}
	account, err := pullsecret.AccountOf(token)
	if err != nil {
		ctrl.Log.Error(err, "the pull secrets of the own ServiceAccount are not used", "file", tokenFile)
	}
	return account
}
