package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterextensions/operator-controller/test/internal/child"
)

const (
	// bootTimeout bounds a start on a machine that is busy with other things;
	// it takes a few seconds otherwise.
	bootTimeout = 3 * time.Minute
	// pollInterval is how often a condition is looked at.
	pollInterval = 50 * time.Millisecond
	// pollTimeout bounds one look: a server that has just begun to listen may
	// accept a request and never answer it.
	pollTimeout = 5 * time.Second
)

// boot brings the cluster from empty directories to usable.
func (c *Cluster) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if err := c.startClients(); err != nil {
		return err
	}
	if err := c.createNodes(ctx); err != nil {
		return err
	}
	return c.awaitUsable(ctx)
}

// startServers starts etcd and the API server and waits for both.
func (c *Cluster) startServers(ctx context.Context) error {
	address, err := c.options.bindAddress()
	if err != nil {
		return err
	}
	// Held until the API server listens, and then no longer needed.
	port, err := reservePort(address)
	if err != nil {
		return err
	}
	defer port.release()
	flags, err := c.prepareAPIServer(port.number)
	if err != nil {
		return err
	}
	if err := c.prepareAccess(flags, address); err != nil {
		return err
	}
	if err := c.restoreSnapshot(ctx); err != nil {
		return err
	}
	err = c.startTier(c.command(etcdName, c.binaries.Etcd, etcdFlags(c.dir).merged(c.options.Etcd)))
	if err != nil {
		return err
	}
	if err := c.startTier(c.command(apiServerName, c.binaries.APIServer, flags)); err != nil {
		return err
	}
	return c.await(ctx, "the API server to be ready", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// prepareAPIServer writes the files that the API server reads and returns its
// flags.
func (c *Cluster) prepareAPIServer(port int) (Flags, error) {
	flags := apiServerFlags(c.dir, port)
	if plugins := c.options.admissionPlugins(); plugins != "" {
		flags["enable-admission-plugins"] = plugins
	}
	audit, err := c.options.Audit.flags(c.dir.join("audit-policy.yaml"))
	if err != nil {
		return nil, err
	}
	flags = flags.merged(audit)
	if c.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	if c.options.Dial != nil {
		config := c.dir.join("egress.yaml")
		if c.egress, err = startEgress(c.options.Dial, c.authority, c.dir, config); err != nil {
			return nil, err
		}
		flags["egress-selector-config-file"] = config
	}
	flags = flags.merged(c.options.APIServer)
	addresses, err := serverAddresses(flags)
	if err != nil {
		return nil, err
	}
	return flags, writeServerFiles(c.dir, c.authority, addresses)
}

// prepareAccess makes the credentials of the administrator and of the
// components that are clients of the API server.
func (c *Cluster) prepareAccess(flags Flags, bind netip.Addr) error {
	if bind.IsUnspecified() {
		bind = loopback
	}
	c.host = "https://" + net.JoinHostPort(bind.String(), flags["secure-port"])
	admin, err := c.ConfigFor(adminUser, mastersGroup)
	if err != nil {
		return err
	}
	c.admin = admin
	if c.client, err = kubernetes.NewForConfig(admin); err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	if err := writeKubeconfig(c.Kubeconfig(), adminUser, admin); err != nil {
		return err
	}
	for component, as := range clientSubjects {
		config, err := c.ConfigFor(as.user, as.groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(c.dir.join(component+".kubeconfig"), as.user, config); err != nil {
			return err
		}
	}
	return nil
}

// startClients starts the components that work through the API server. They
// start after it, because some give up if it is not there or does not yet know
// their roles.
func (c *Cluster) startClients() error {
	commands := []child.Command{
		c.command(controllerManagerName, c.binaries.ControllerManager,
			controllerManagerFlags(c.dir).merged(c.options.ControllerManager)),
		c.command(schedulerName, c.binaries.Scheduler,
			schedulerFlags(c.dir).merged(c.options.Scheduler)),
	}
	if c.options.Nodes != NoNodes {
		commands = append(commands, c.command(kwokName, c.binaries.KWOK,
			kwokFlags(c.dir, c.binaries.Stages).merged(c.options.KWOK)))
	}
	return c.startTier(commands...)
}

func (c *Cluster) createNodes(ctx context.Context) error {
	if c.options.Nodes == NoNodes {
		return nil
	}
	return createNodes(ctx, c.client, c.options.Nodes)
}

// awaitUsable waits for what every test takes for granted.
func (c *Cluster) awaitUsable(ctx context.Context) error {
	err := c.await(ctx, "the default ServiceAccount", func(ctx context.Context) error {
		accounts := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil || c.options.Nodes == NoNodes {
		return err
	}
	return c.await(ctx, "nodes", func(ctx context.Context) error {
		return nodesUsable(ctx, c.client, c.options.Nodes)
	})
}

// await returns nil once the condition does. It fails as soon as a component has
// ended, because then the condition will never be met.
func (c *Cluster) await(ctx context.Context, what string, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := look(ctx, condition)
		if err == nil {
			return nil
		}
		select {
		case <-c.group.Lost():
			return c.group.Err()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

func look(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return condition(ctx)
}

// command runs in the working directory, where the sockets are, and gets none of
// the environment: proxies and configuration in the home of a developer must not
// change a test. Its garbage is collected a quarter as often, which takes a fifth less CPU time.
// There is no limit on memory, because most of the time would go into collection near that limit.
func (c *Cluster) command(name, path string, flags Flags) child.Command {
	return child.Command{
		Name: name,
		Path: path,
		Args: flags.arguments(),
		Dir:  c.dir.path,
		Env: []string{
			"HOME=" + c.dir.path, "TMPDIR=" + c.dir.path, "PATH=" + os.Getenv("PATH"),
			"GOGC=400",
		},
		Log: filepath.Join(c.logs, name+".log"),
	}
}

// startTier starts components that depend on those started before, and not on
// each other.
func (c *Cluster) startTier(commands ...child.Command) error {
	tier := len(c.tiers)
	c.tiers = append(c.tiers, nil)
	for _, command := range commands {
		process, err := c.group.Start(command)
		if err != nil {
			return err
		}
		c.tiers[tier] = append(c.tiers[tier], process)
	}
	return nil
}
