"""A convolutional network for images in the shapes of MNIST, with the fragments of document 003."""

from tensorflow import keras
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Dense, Dropout, Flatten
from tensorflow.keras.layers import Conv2D, MaxPooling2D
import ddl
import numpy as np
import digits

batch_size = 40
num_classes = 10
epochs = 3
np.random.seed(ddl.rank())

(x_train, y_train), (x_test, y_test) = digits.load_data()
x_train = x_train.reshape(x_train.shape[0], 28, 28, 1)
x_test = x_test.reshape(x_test.shape[0], 28, 28, 1)

# DDL: Save the full test data before splitting for final accuracy check.
x_test_full = x_test.astype('float32') / 255
y_test_full = keras.utils.to_categorical(y_test, num_classes)

# DDL: Split the training & testing data.
x_train = np.array_split(x_train, ddl.size())[ddl.rank()]
x_test = np.array_split(x_test, ddl.size())[ddl.rank()]
x_train = x_train.astype('float32')
x_test = x_test.astype('float32')
x_train /= 255
x_test /= 255
print('x_train shape:', x_train.shape)
print(x_train.shape[0], 'train samples')
print(x_test.shape[0], 'test samples')

# DDL: Split the training & testing data.
y_train = np.array_split(y_train, ddl.size())[ddl.rank()]
y_test = np.array_split(y_test, ddl.size())[ddl.rank()]

y_train = keras.utils.to_categorical(y_train, num_classes)
y_test = keras.utils.to_categorical(y_test, num_classes)

model = Sequential()
model.add(Conv2D(8, kernel_size=(3, 3), activation="relu", input_shape=(28, 28, 1)))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(32, activation="relu"))
model.add(Dense(num_classes, activation="softmax"))

# DDL: adjust learning rate based on number of GPUs.
model.compile(loss=keras.losses.categorical_crossentropy,
            optimizer=keras.optimizers.Adadelta(learning_rate=1.0 * ddl.size()),
             metrics=['accuracy'])

callbacks = list()

# DDL: Add the DDL callback.
callbacks.append(ddl.DDLCallback())
callbacks.append(ddl.DDLGlobalVariablesCallback())

history = model.fit(
    x_train,
    y_train,
    batch_size=batch_size // ddl.size(),
    epochs=epochs,
    verbose=0,
    validation_data=(x_test, y_test),
    callbacks=callbacks,
)
if ddl.rank() == 0:
    score = model.evaluate(x_test_full, y_test_full, verbose=0)
    print("test accuracy %.3f" % score[1])
weights = sum(float(np.abs(weight).sum()) for weight in model.get_weights())
losses = ["%.6f" % loss for loss in history.history["loss"]]
print("rank %d of %d: weights %.5f losses %s" % (ddl.rank(), ddl.size(), weights, losses))
