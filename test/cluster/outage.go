package cluster

import (
	"fmt"
	"time"
)

// stopGrace is the time until a component that is halted is killed.
const stopGrace = 3 * time.Second

// Halt ends a component and leaves it ended, until Resume. The others stay, and
// have to do without it.
func (c *Cluster) Halt(component string) error {
	tier, i, err := c.find(component)
	if err != nil {
		return err
	}
	c.tiers[tier][i].Stop(stopGrace)
	return nil
}

// Resume starts a component that was halted, with the same flags and on the same
// port. It does not wait for it.
func (c *Cluster) Resume(component string) error {
	tier, i, err := c.find(component)
	if err != nil {
		return err
	}
	process, err := c.group.Start(c.tiers[tier][i].Command())
	if err != nil {
		return err
	}
	c.tiers[tier][i] = process
	return nil
}

func (c *Cluster) find(component string) (tier, index int, _ error) {
	for tier, processes := range c.tiers {
		for index, process := range processes {
			if process.Name() == component {
				return tier, index, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("the cluster runs no %s", component)
}
