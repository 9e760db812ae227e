source_filename = "sum"
target triple = "x86_64-unknown-linux-gnu"

define void @sum(ptr noalias nocapture readonly %args, i64 %chunk_begin, i64 %chunk_end) #0 {
entry:
  %bufs.at = getelementptr inbounds i8, ptr %args, i64 0
  %bufs = load ptr, ptr %bufs.at, align 8, !invariant.load !1
  %vars.at = getelementptr inbounds i8, ptr %args, i64 8
  %vars = load ptr, ptr %vars.at, align 8, !invariant.load !1
  %b0.at = getelementptr inbounds ptr, ptr %bufs, i64 0
  %b0 = load ptr, ptr %b0.at, align 8, !invariant.load !1
  %b1.at = getelementptr inbounds ptr, ptr %bufs, i64 1
  %b1 = load ptr, ptr %b1.at, align 8, !invariant.load !1
  %v5.at = getelementptr inbounds i64, ptr %vars, i64 1
  %v5 = load i64, ptr %v5.at, align 8, !invariant.load !1
  %r0 = alloca <8 x float>
  store <8 x float> zeroinitializer, ptr %r0
  %v6 = add nsw i64 %v5, 7
  %v8 = udiv i64 %v6, 8
  br label %loop9
loop9:
  %v9 = phi i64 [ 0, %entry ], [ %next9, %latch9 ]
  %v11 = mul nsw i64 %v9, 8
  %t0 = insertelement <8 x i64> poison, i64 %v11, i64 0
  %v12 = shufflevector <8 x i64> %t0, <8 x i64> poison, <8 x i32> zeroinitializer
  %v13 = add nsw <8 x i64> %v12, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %t1 = insertelement <8 x i64> poison, i64 %v5, i64 0
  %v14 = shufflevector <8 x i64> %t1, <8 x i64> poison, <8 x i32> zeroinitializer
  %v15 = icmp slt <8 x i64> %v13, %v14
  %v16 = add nsw i64 %v11, 0
  %t2 = getelementptr float, ptr %b0, i64 %v16
  %v17 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t2, i32 4, <8 x i1> %v15, <8 x float> zeroinitializer), !alias.scope !2, !noalias !3
  %v18 = load <8 x float>, ptr %r0
  %v19 = fadd <8 x float> %v18, %v17
  store <8 x float> %v19, ptr %r0
  br label %latch9
latch9:
  %next9 = add nsw i64 %v9, 1
  %t3 = icmp slt i64 %next9, %v8
  br i1 %t3, label %loop9, label %done9, !llvm.loop !0
done9:
  %v22 = load <8 x float>, ptr %r0
  %v23 = shufflevector <8 x float> %v22, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v24 = shufflevector <8 x float> %v22, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v25 = fadd <4 x float> %v23, %v24
  %v26 = shufflevector <4 x float> %v25, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v27 = shufflevector <4 x float> %v25, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v28 = fadd <2 x float> %v26, %v27
  %v29 = extractelement <2 x float> %v28, i64 0
  %v30 = extractelement <2 x float> %v28, i64 1
  %v31 = fadd float %v29, %v30
  %t4 = getelementptr inbounds float, ptr %b1, i64 0
  store float %v31, ptr %t4, align 4, !alias.scope !4, !noalias !5
  ret void
}

attributes #0 = { nounwind "no-builtins" "target-cpu"="x86-64" "tune-cpu"="generic" "target-features"="+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3" "prefer-vector-width"="256" "min-legal-vector-width"="256" }

!0 = distinct !{!0, !6, !7}
!1 = !{}
!2 = !{!9}
!3 = !{!10}
!4 = !{!10}
!5 = !{!9}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = !{!"llvm.loop.vectorize.enable", i1 false}
!8 = distinct !{!8}
!9 = distinct !{!9, !8}
!10 = distinct !{!10, !8}
