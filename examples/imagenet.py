#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train a classifier of torchvision on ImageNet, or on random images: something for probing to look at.

    PROBING=1 PROBING_TORCH_PROFILING=on python examples/imagenet.py -a resnet18 --dummy -b 1
    torchrun --nproc-per-node 4 examples/imagenet.py -a resnet50 -b 256 /data/imagenet

The options have the names of PyTorch's example of the same name. It runs on a GPU if there is one, and under torchrun on one per
rank. probing.step() and probing.log() do nothing where no agent is in the process.
"""
import argparse
import contextlib
import os
import random
import time

import torch
import torch.distributed
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

try:
    import probing
except ImportError:
    probing = None

N_DUMMY = {"train": 1281167, "val": 50000}  # images of ImageNet
SIZE, N_CLASSES = 224, 1000


class Dummy(Dataset):
    """Random images, the same ones each time."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(3, SIZE, SIZE, generator=generator), i % N_CLASSES


class Mean:
    """A value and its mean."""

    def __init__(self, name, form):
        self.name, self.form, self.last, self.total, self.n = name, form, 0.0, 0.0, 0

    def add(self, value, n=1):
        self.last, self.total, self.n = value, self.total + value * n, self.n + n

    @property
    def mean(self):
        return self.total / max(self.n, 1)

    def __str__(self):
        return "%s %s (%s)" % (self.name, self.form % self.last, self.form % self.mean)


def parse():
    parser = argparse.ArgumentParser(description="Train a classifier of torchvision on ImageNet")
    add = parser.add_argument
    models = sorted(name for name, one in vars(torchvision.models).items() if name.islower() and callable(one) and not name.startswith("_"))
    add("data", metavar="DIR", nargs="?", default="imagenet", help="folder with train/ and val/, a folder per class (default: imagenet)")
    add("-a", "--arch", metavar="ARCH", default="resnet18", choices=models, help="model of torchvision (default: resnet18)")
    add("-j", "--workers", type=int, default=4, metavar="N", help="processes that load data (default: 4)")
    add("--epochs", type=int, default=90, metavar="N", help="epochs to train (default: 90)")
    add("--start-epoch", type=int, default=0, metavar="N", help="number of the first epoch (default: 0)")
    add("-b", "--batch-size", type=int, default=256, metavar="N", help="images in a batch, of all ranks together (default: 256)")
    add("--lr", "--learning-rate", type=float, default=0.1, metavar="LR", help="learning rate (default: 0.1)")
    add("--momentum", type=float, default=0.9, metavar="M", help="momentum (default: 0.9)")
    add("--wd", "--weight-decay", type=float, default=1e-4, metavar="W", help="weight decay (default: 1e-4)")
    add("-p", "--print-freq", type=int, default=10, metavar="N", help="print each Nth step (default: 10)")
    add("--resume", metavar="PATH", help="go on from a checkpoint")
    add("-e", "--evaluate", action="store_true", help="only validate")
    add("--pretrained", action="store_true", help="begin with the weights that torchvision downloads")
    add("--seed", type=int, metavar="N", help="seed of the random numbers")
    add("--gpu", type=int, metavar="N", help="use this GPU")
    add("--no-accel", action="store_true", help="use the CPU even if there is a GPU")
    add("--dist-backend", metavar="NAME", help="of torch.distributed (default: nccl on GPUs, otherwise gloo)")
    add("--dummy", action="store_true", help="random images in place of a folder")
    add("--amp", action="store_true", help="compute in bfloat16 where that is safe")
    add("--max-steps", type=int, metavar="N", help="end after so many steps")
    return parser.parse_args()


def choose_device(arguments):
    if arguments.no_accel or not torch.cuda.is_available():
        return torch.device("cpu")
    n = arguments.gpu if arguments.gpu is not None else int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(n)
    return torch.device("cuda", n)


def get_datasets(arguments):
    if arguments.dummy:
        return Dummy(N_DUMMY["train"]), Dummy(N_DUMMY["val"])
    from torchvision import transforms
    normalize = transforms.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    train = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
    validate = [transforms.Resize(256), transforms.CenterCrop(SIZE), transforms.ToTensor(), normalize]
    return [torchvision.datasets.ImageFolder(os.path.join(arguments.data, name), transforms.Compose(steps))
            for name, steps in (("train", train), ("val", validate))]


def get_loader(dataset, arguments, n_ranks, device, shuffles):
    sampler = DistributedSampler(dataset, shuffle=shuffles) if n_ranks > 1 else None
    return DataLoader(dataset, batch_size=max(1, arguments.batch_size // n_ranks), shuffle=shuffles and sampler is None, sampler=sampler,
                      num_workers=arguments.workers, pin_memory=device.type == "cuda")


def accuracy(output, target, n):
    """Per cent of the images whose class is among the n likeliest."""
    with torch.no_grad():
        likeliest = output.topk(n, dim=1).indices
        return (likeliest == target.unsqueeze(1)).any(dim=1).float().mean().item() * 100


class Training:
    def __init__(self, arguments):
        self.arguments, self.device = arguments, choose_device(arguments)
        self.rank, self.n_ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.model = getattr(torchvision.models, arguments.arch)(**({"weights": "DEFAULT"} if arguments.pretrained else {})).to(self.device)
        if self.n_ranks > 1:
            torch.distributed.init_process_group(arguments.dist_backend or ("nccl" if self.device.type == "cuda" else "gloo"))
            self.model = nn.parallel.DistributedDataParallel(self.model, device_ids=[self.device] if self.device.type == "cuda" else None)
        self.criterion = nn.CrossEntropyLoss().to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), arguments.lr, momentum=arguments.momentum, weight_decay=arguments.wd)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=30, gamma=0.1)
        self.n_steps = 0

    def forward(self, images):
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if self.arguments.amp else contextlib.nullcontext():
            return self.model(images)

    def is_over(self):
        return self.arguments.max_steps is not None and self.n_steps >= self.arguments.max_steps

    def say(self, *words):
        if self.rank == 0:
            print(*words, sep="\t", flush=True)

    def train(self, loader, epoch):
        self.model.train()
        batch_time, data_time = Mean("Time", "%.3f"), Mean("Data", "%.3f")
        losses, top1, top5 = Mean("Loss", "%.4e"), Mean("Acc@1", "%.2f"), Mean("Acc@5", "%.2f")
        end = time.time()
        for i, (images, target) in enumerate(loader):
            data_time.add(time.time() - end)
            images, target = images.to(self.device, non_blocking=True), target.to(self.device, non_blocking=True)
            output = self.forward(images)
            loss = self.criterion(output, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.n_steps += 1
            is_last = self.is_over()
            if i % self.arguments.print_freq == 0 or is_last:
                n, acc1, acc5 = images.size(0), accuracy(output, target, 1), accuracy(output, target, 5)
                losses.add(loss.item(), n)
                top1.add(acc1, n)
                top5.add(acc5, n)
                if probing is not None:
                    probing.log(epoch=epoch, step=self.n_steps, loss=losses.last, acc1=acc1, acc5=acc5)
            batch_time.add(time.time() - end)
            if i % self.arguments.print_freq == 0 or is_last:
                self.say("Epoch: [%d][%d/%d]" % (epoch, i + 1, len(loader)), batch_time, data_time, losses, top1, top5)
            end = time.time()
            if is_last:
                return

    def validate(self, loader):
        self.model.eval()
        top1, top5 = Mean("Acc@1", "%.3f"), Mean("Acc@5", "%.3f")
        with torch.no_grad():
            for i, (images, target) in enumerate(loader):
                images, target = images.to(self.device, non_blocking=True), target.to(self.device, non_blocking=True)
                output = self.forward(images)
                top1.add(accuracy(output, target, 1), images.size(0))
                top5.add(accuracy(output, target, 5), images.size(0))
                if i % self.arguments.print_freq == 0:
                    self.say("Test: [%d/%d]" % (i + 1, len(loader)), top1, top5)
                if self.arguments.max_steps is not None and i + 1 >= self.arguments.max_steps:
                    break
        self.say(" *", top1, top5)

    def resume(self, path):
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        return state["epoch"]

    def save(self, epoch):
        if self.rank == 0:
            torch.save({"epoch": epoch, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                        "scheduler": self.scheduler.state_dict()}, "checkpoint.pth.tar")


def main():
    arguments = parse()
    if arguments.seed is not None:
        random.seed(arguments.seed)
        torch.manual_seed(arguments.seed)
    training = Training(arguments)
    train_set, val_set = get_datasets(arguments)
    loaders = [get_loader(one, arguments, training.n_ranks, training.device, shuffles) for one, shuffles in ((train_set, True), (val_set, False))]
    first = training.resume(arguments.resume) if arguments.resume else arguments.start_epoch
    if arguments.evaluate:
        training.validate(loaders[1])
        return
    for epoch in range(first, arguments.epochs):
        if training.n_ranks > 1:
            loaders[0].sampler.set_epoch(epoch)
        training.train(loaders[0], epoch)
        if training.is_over():
            break
        training.validate(loaders[1])
        training.scheduler.step()
        training.save(epoch + 1)
    if training.n_ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
