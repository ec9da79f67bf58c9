public import Foundation

/// A file as durable as it gets without a database.
public enum DurableFile {
  /// Writes the bytes into a file beside, syncs it, renames it, and syncs the folder.
  public static func write(_ bytes: Data, to file: URL) throws {
    let temporary = file.appendingPathExtension("new")
    try bytes.write(to: temporary)
    try sync(temporary)
    try BenchmarkError.require(rename(temporary.path, file.path) == 0, "The file can't be renamed")
    try sync(file.deletingLastPathComponent())
  }

  private static func sync(_ url: URL) throws {
    let descriptor = open(url.path, O_RDONLY)
    try BenchmarkError.require(descriptor >= 0, "\(url.lastPathComponent) can't be opened")
    defer { close(descriptor) }
    try BenchmarkError.require(fsync(descriptor) == 0, "\(url.lastPathComponent) can't be synced")
  }
}
