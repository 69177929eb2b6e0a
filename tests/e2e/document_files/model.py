# SPDX-License-Identifier: MIT
"""The model of train.py."""


class Net:
    def state_dict(self):
        return {"weight": 1.0}

    def forward(self, batch):
        return sum(i * i for i in range(batch))
