"""What runs elsewhere: prefect.yaml, and the pyfunc that MLflow serves."""
