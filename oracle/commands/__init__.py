"""The sub-commands of ``aclnn-oracle``, one file each."""
