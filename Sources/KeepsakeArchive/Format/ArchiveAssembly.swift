import Foundation

/// Puts an archive together once all values are written: sections, footer, checksum.
struct ArchiveAssembly {
  let core: WriterCore
  let rootEnd: Int

  /// Objects of one class that the decoder builds one after the other.
  private struct Run {
    let type: Int32
    var ids: [Int32]
  }

  func finish(_ output: inout ArchiveWriter) throws -> Data {
    let order = try core.buildOrder()
    let written = core.written
    let valuesEnd = output.offset
    let referencesEnd = output.otherOffset
    if let order {
      func pieces(_ start: (Int) -> Int, _ end: Int) -> [Range<Int>] {
        order.map { position in
          let index = Int(position)
          return start(index)..<(index + 1 < written.count ? start(index + 1) : end)
        }
      }
      output.reorder(
        root: rootEnd, values: pieces({ written[$0].values }, valuesEnd),
        references: pieces({ written[$0].references }, referencesEnd))
    }
    var runs: [Run] = []
    for position in order ?? Array(0..<Int32(written.count)) {
      let object = written[Int(position)]
      if runs.last?.type == object.type {
        runs[runs.count - 1].ids.append(object.id)
      } else {
        runs.append(Run(type: object.type, ids: [object.id]))
      }
    }
    output.appendOther()
    let footer = footer(
      lengths: (rootEnd - ArchiveLayout.headerBytes, valuesEnd - rootEnd, referencesEnd), objects: core.objects.count, runs: runs)
    let footerOffset = output.offset
    guard footerOffset + footer.count + ArchiveLayout.trailerBytes <= core.limits.archiveBytes else {
      throw ArchiveError(.limit, "The archive would take \(footerOffset + footer.count) bytes; the limit is \(core.limits.archiveBytes)")
    }
    footer.withUnsafeBytes { output.putBytes($0) }
    output.putFixed(UInt64(footerOffset))
    return output.sealed()
  }

  private func footer(lengths: (Int, Int, Int), objects: Int, runs: [Run]) -> [UInt8] {
    var bytes: [UInt8] = []
    let fixed = core.staticSchema
    let dynamic = core.dynamicSchema
    Varint.append(UInt64(fixed.count), to: &bytes)
    Varint.append(UInt64(fixed.bytes.count), to: &bytes)
    bytes += fixed.bytes
    Varint.append(UInt64(dynamic.count), to: &bytes)
    bytes += dynamic.bytes
    core.schema.appendExpression(fixed.root, to: &bytes)
    Varint.append(UInt64(core.names.count), to: &bytes)
    for name in core.names { Varint.append(name, to: &bytes) }
    Varint.append(UInt64(core.wires.count), to: &bytes)
    for node in core.wires { core.schema.appendExpression(node, to: &bytes) }
    for length in [lengths.0, lengths.1, lengths.2] { Varint.append(UInt64(length), to: &bytes) }
    Varint.append(UInt64(objects), to: &bytes)
    Varint.append(UInt64(runs.count), to: &bytes)
    for run in runs { append(run, to: &bytes) }
    return bytes
  }

  /// The class, the count, and either the first number or the steps from one number to the next.
  private func append(_ run: Run, to bytes: inout [UInt8]) {
    Varint.append(UInt64(run.type), to: &bytes)
    Varint.append(UInt64(run.ids.count), to: &bytes)
    let isContiguous = zip(run.ids, run.ids.dropFirst()).allSatisfy { $0 + 1 == $1 }
    bytes.append(isContiguous ? 0 : 1)
    var last: Int32 = 0
    for id in isContiguous ? run.ids.prefix(1) : run.ids[...] {
      let step = Int64(id) - Int64(last)
      Varint.append(UInt64(bitPattern: (step << 1) ^ (step >> 63)), to: &bytes)
      last = id
    }
  }
}
