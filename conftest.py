pytest_plugins = ["kimi_eval.pytest_plugin"]
