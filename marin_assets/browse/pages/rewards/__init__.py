"""Pages of trainings on rewards: what they learn, what they wait for, and the rollouts one by one."""
