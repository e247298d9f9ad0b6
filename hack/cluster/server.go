//go:build !envtest

package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // ways to authenticate, for kubectl
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func init() { //nolint:gochecknoinits // a build tag decides whether these components exist
	components["etcd"] = func() { etcdmain.Main(os.Args) }
	components["kube-apiserver"] = func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) }
	components["kubectl"] = func() {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	}
}
