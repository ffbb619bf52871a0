"""Tasks of Inspect, the framework of the UK AI Security Institute, run by its own package in an environment of its own.

evaluate_with_inspect  the stage
inspect_config         its config
gateway                the address at which Inspect has the model
inspect_program        the script that runs in Inspect's environment
log_rows               rows of scores and of answers, from Inspect's logs
"""
