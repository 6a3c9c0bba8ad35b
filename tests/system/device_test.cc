#include "system/device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "os/temp_folder.h"

namespace lowtide::device_test {
namespace {

// A /sys of our own, in which 8:1 is a partition of 8:0 as the kernel shows it.
class DeviceTest : public testing::Test {
 protected:
  DeviceTest() : root_{folder_ / "proc", folder_ / "cgroup", folder_ / "sys"} {
    folder_.write("sys/devices/sda/uevent", "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n");
    folder_.write("sys/devices/sda/sda1/uevent", "DEVNAME=sda1\n");
    set("rotational", "1\n");
    set("scheduler", "none [mq-deadline] kyber\n");
    set("read_ahead_kb", "128\n");
    std::filesystem::create_directories(folder_ / "sys/dev/block");
    std::filesystem::create_symlink(folder_ / "sys/devices/sda", folder_ / "sys/dev/block/8:0");
    std::filesystem::create_symlink(folder_ / "sys/devices/sda/sda1",
                                    folder_ / "sys/dev/block/8:1");
  }
  void set(const std::string& name, const std::string& value) {
    folder_.write("sys/devices/sda/queue/" + name, value);
  }
  [[nodiscard]] Device of(const std::string& number, const std::string& source = "") const {
    return device_of({"ext4", "/", source, number}, root_);
  }

  TempFolder folder_;
  SystemRoot root_;
};

TEST_F(DeviceTest, IsReadFromItsQueue) {
  const Device device = of("8:0");
  EXPECT_EQ(device.name, "sda");
  EXPECT_EQ(device.rotational, true);
  EXPECT_EQ(device.scheduler, "mq-deadline");
  EXPECT_EQ(device.read_ahead_bytes, 128u << 10);
  EXPECT_EQ(device.read_ahead_source, folder_ / "sys/dev/block/8:0/queue/read_ahead_kb");
}

TEST_F(DeviceTest, OfAPartitionHasTheQueueOfItsDisk) {
  const Device device = of("8:1");
  EXPECT_EQ(device.name, "sda1");
  EXPECT_EQ(device.rotational, true);
  EXPECT_EQ(device.read_ahead_bytes, 128u << 10);
}

TEST_F(DeviceTest, PrefersTheReadAheadOfTheFileSystem) {
  folder_.write("sys/class/bdi/8:0/read_ahead_kb", "8192\n");
  EXPECT_EQ(of("8:0").read_ahead_bytes, 8192u << 10);
  folder_.write("sys/class/bdi/0:41/read_ahead_kb", "15360\n");
  const Device network = device_of({"nfs4", "/net", "server:/export", "0:41"}, root_);
  EXPECT_EQ(network.read_ahead_bytes, 15360u << 10);
  EXPECT_EQ(network.name, "");
  EXPECT_FALSE(network.rotational);
}

TEST_F(DeviceTest, KnowsASchedulerWithoutChoice) {
  set("scheduler", "none\n");
  EXPECT_EQ(of("8:0").scheduler, "none");
  set("scheduler", "]odd[\n");
  EXPECT_EQ(of("8:0").scheduler, "");
}

TEST_F(DeviceTest, ThatNobodyKnowsIsUnknown) {
  for (const char* number : {"9:9", "0:77", ""}) {
    const Device device = of(number, "/dev/not-there");
    EXPECT_EQ(device.number, number);
    EXPECT_EQ(device.name, "");
    EXPECT_FALSE(device.read_ahead_bytes);
    EXPECT_FALSE(device.rotational);
    EXPECT_EQ(device.scheduler, "");
  }
  set("read_ahead_kb", "99999999999999999999999\n");
  EXPECT_FALSE(of("8:0").read_ahead_bytes);
}

}  // namespace
}  // namespace lowtide::device_test
