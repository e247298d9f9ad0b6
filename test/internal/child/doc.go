// Package child runs processes that do not outlive the process that started
// them: Command -> Process, and word of the first one that ends on its own.
//
// On Linux the kernel kills them when this process dies, however it dies.
// Elsewhere they stay in its process group, so that whoever kills the group
// reaches them. It must not know what the processes are for.
package child
