"""Callbacks of Keras; see ``distributed_dl_training.tensorflow._callbacks``."""

import keras

from distributed_dl_training.tensorflow import _callbacks


class BroadcastGlobalVariablesCallback(
    _callbacks.BroadcastGlobalVariables, keras.callbacks.Callback
):
    __doc__ = _callbacks.BroadcastGlobalVariables.__doc__


class MetricAverageCallback(_callbacks.MetricAverage, keras.callbacks.Callback):
    __doc__ = _callbacks.MetricAverage.__doc__


class LearningRateScheduleCallback(_callbacks.LearningRateSchedule, keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateSchedule.__doc__


class LearningRateWarmupCallback(_callbacks.LearningRateWarmup, keras.callbacks.Callback):
    __doc__ = _callbacks.LearningRateWarmup.__doc__


class BestModelCheckpoint(_callbacks.BestModel, keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestModel.__doc__
