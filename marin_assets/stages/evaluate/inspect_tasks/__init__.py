"""Tasks of Inspect, the framework of the UK AI Security Institute, run by its own package in an environment of its own.

evaluate_with_inspect  the stage
inspect_config         its config
gateway, messages      the address at which Inspect has the model, and the forms in which the model gets messages
inspect_program        the script that runs in Inspect's environment
kept_logs              its logs, until the evaluation ends
log_rows               rows of scores and of answers, from these logs
"""
